"""Arms that come and go by name."""

from solid_bandits.features.design import Design
from solid_bandits.live.arguments import Time, moment
from solid_bandits.live.ledger import Ledger


class Arms(Ledger):
    """Calls of a bandit that change its arms; each is an event of its log."""

    @property
    def arms(self) -> tuple[str, ...] | None:
        """Return the names of the arms on offer now; None where no arms were declared.

        Example:
            >>> import solid_bandits as sb
            >>> bandit = sb.Bandit(arms=["climate", "football"], context=["age"])
            >>> bandit.arms
            ('climate', 'football')
        """
        if self.design is None or self.design.features.arms is None:
            return None
        with self._turn:
            return tuple(self.design.offered())

    def add_arm(self, arm: str, like: str | None = None, time: Time | None = None) -> None:
        """Add an arm by name; a removed arm comes back with its estimate.

        Args:
            arm: name of the arm.
            like: another arm, whose estimate and certainty it starts with; None starts from the prior.
            time: time for the log; None is now.

        Example:
            >>> import solid_bandits as sb
            >>> bandit = sb.Bandit(arms=["climate", "science"], context=["age"])
            >>> bandit.add_arm("travel", like="science")
            >>> bandit.decide({"age": 34}).arms
            ('climate', 'science', 'travel')
        """
        when = moment("time", time)
        with self._turn:
            self._require_names().check_add(arm, like)
            self._change_arms({"add": arm, "like": like}, when)

    def remove_arm(self, arm: str, time: Time | None = None) -> None:
        """Remove an arm from all future offers; its estimate is kept for its return, and late rewards are learnt.

        Example:
            >>> import solid_bandits as sb
            >>> bandit = sb.Bandit(arms=["climate", "football"], context=["age"])
            >>> bandit.remove_arm("football")
            >>> bandit.decide({"age": 34}).arms
            ('climate',)
        """
        when = moment("time", time)
        with self._turn:
            self._require_names().check_remove(arm)
            self._change_arms({"remove": arm}, when)

    def _require_names(self) -> Design:
        if self.design is None:
            raise ValueError("arms must be declared to be changed by name: make the bandit with arms=[...]")
        return self.design
