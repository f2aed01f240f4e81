"""The format of saved results: the fields of their manifest. `table_format` has the columns of their tables."""

from typing import Annotated, Any

from msgspec import Meta

from solid_bandits._internal.decoding import AtLeastOne, Content, Count, NotNegative
from solid_bandits._internal.files import ARMS_FILE, CALIBRATION_FILE, DIAGNOSTICS_FILE, FORMAT, TABLE_FILE

FIELDS = {DIAGNOSTICS_FILE: "diagnostics", ARMS_FILE: "arms", CALIBRATION_FILE: "calibration"}
"""Additional tables, and the fields that hold them."""


class PlayedProblem(Content):
    """The problem or stream that was played."""

    description: str = ""
    fingerprint: str = ""
    name: str = ""
    arms: tuple[str, ...] = ()


class Configuration(Content, kw_only=True):
    """All inputs that determine the results."""

    policies: Annotated[dict[str, dict[str, Any]], Meta(min_length=1)]
    horizon: AtLeastOne
    runs: AtLeastOne
    seed: Count
    problem: PlayedProblem | None = None
    diagnostics: bool = False
    first_run: Count = 0
    pulls: bool = False
    tell_noise: bool = True
    stream: bool = False


class SavedTable(Content):
    """A table stored next to the manifest."""

    sha256: str
    rows: Count


class BoundRecord(Content):
    """The regret lower bound, or the reason why there is none."""

    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    allocation: list[list[float]] | None = None
    problems: Count | None = None
    reason: str = ""


class Target(Content):
    """The optimal exploration policy at one normalisation; null where there is none."""

    z: float
    omega: list[list[float]] | None
    multiplier: float | None
    value: float | None


class Targets(Content):
    """The optimal exploration policies that SOLID's policies are compared with."""

    context_probs: list[float]
    n_arms: AtLeastOne
    at: list[Target]


class Manifest(Content, kw_only=True):
    """Manifest of saved results."""

    format: int
    configuration: Configuration
    tables: dict[str, SavedTable]
    versions: dict[str, str] | None = None
    started: str = ""
    finished: str = ""
    wall_seconds: NotNegative = 0.0
    seconds: dict[str, NotNegative] | None = None
    jobs: AtLeastOne = 1
    device: str = ""
    made_by: dict[str, str] | None = None
    lower_bound: BoundRecord | None = None
    targets: Targets | None = None

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT}, got {self.format}")
        configuration = self.configuration
        wanted = [TABLE_FILE]
        wanted += [DIAGNOSTICS_FILE] if configuration.diagnostics or configuration.pulls else []
        wanted += [ARMS_FILE, CALIBRATION_FILE] if configuration.stream else []
        if set(self.tables) != set(wanted):
            raise ValueError(f"tables must be {', '.join(wanted)}, got {', '.join(map(repr, self.tables))}")
        strangers = set(self.seconds or {}) - set(configuration.policies)
        if strangers:
            raise ValueError(
                f"seconds must be those of the policies, got {', '.join(sorted(map(repr, strangers)))}"
            )
