"""Tags: which jobs have one, since when, and how often each was used."""

from collections.abc import Iterable, Mapping

from crossdock.engine.order import Order, entry
from crossdock.model.faces import Tag
from crossdock.model.job import Job, Number


def name(tag: Tag) -> str:
    """Tags that print alike are one."""
    if isinstance(tag, str):
        return tag
    return str(tag).lower() if isinstance(tag, bool) else f"{tag:.14g}"


class Tags:
    __slots__ = ("jobs", "since", "top", "uses")

    def __init__(self) -> None:
        self.since: dict[str, dict[Number, float]] = {}
        self.jobs: dict[str, Order[tuple[float, str, Number]]] = {}  #: time, jid, number
        self.uses: dict[str, int] = {}
        self.top: Order[tuple[int, str]] = Order()

    def add(self, number: Number, jid: str, tag: Tag, t: float) -> None:
        text = name(tag)
        since = self.since.setdefault(text, {})
        jobs = entry(self.jobs, text)
        if number in since:
            jobs.take((since[number], jid, number))
        since[number] = t
        jobs.add((t, jid, number))
        self._use(text, 1)

    def drop(self, number: Number, jid: str, tags: Iterable[Tag], *, clean: bool = False) -> None:
        """`clean`: one that no job has any more is not counted any more, either (reqless' jobs)."""
        for tag in tags:
            text = name(tag)
            self._unlist(text, number, jid)
            self._use(text, -self.uses.get(text, 0) if clean and text not in self.since else -1)

    def rename(self, number: Number, jid: str, to: str, tags: Iterable[Tag]) -> None:
        """It goes on under another jid, in the same place but for that."""
        for text in dict.fromkeys(map(name, tags)):
            since = self.since.get(text, {}).get(number)
            if since is not None:
                self.jobs[text].take((since, jid, number))
                self.jobs[text].add((since, to, number))

    def lose(self, number: Number, jid: str, tags: Iterable[Tag]) -> None:
        """It is found under these no longer; how often each was used stays as it is."""
        for tag in tags:
            self._unlist(name(tag), number, jid)

    def _unlist(self, text: str, number: Number, jid: str) -> None:
        since = self.since.get(text)
        if since is not None and number in since:
            self.jobs[text].take((since.pop(number), jid, number))
            if not since:
                del self.since[text], self.jobs[text]

    def _use(self, text: str, times: int) -> None:
        before = self.uses.get(text, 0)
        if before:
            self.top.take((before, text))
        after = before + times
        if after:
            self.uses[text] = after
            self.top.add((after, text))
        else:
            self.uses.pop(text, None)

    def restore(self, since: dict[str, dict[Number, float]], uses: dict[str, int], jobs: Mapping[Number, Job]) -> None:
        self.since = since
        self.jobs = {
            text: Order((t, jobs[number].jid, number) for number, t in each.items()) for text, each in since.items()
        }
        self.uses = uses
        self.top = Order((count, text) for text, count in uses.items())
