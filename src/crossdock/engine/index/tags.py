"""Tags: which jobs have a tag, since when, and how often each was used."""

from collections.abc import Iterable, Mapping

from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.model.job import Job, Number
from crossdock.model.protocol_data import Tag

#: Unused tags that are kept, as the scripts do. With more of them the oldest are forgotten.
UNUSED_AT_MOST = 1_000


def name(tag: Tag) -> str:
    """The text of a tag. Tags with the same text are one tag."""
    if isinstance(tag, str):
        return tag
    return str(tag).lower() if isinstance(tag, bool) else f"{tag:.14g}"


class TagIndex:
    __slots__ = ("jobs", "since", "top", "unused", "uses")

    def __init__(self) -> None:
        self.since: dict[str, dict[Number, float]] = {}
        self.jobs: dict[str, SortedList[tuple[float, str, Number]]] = {}  #: time, jid, number
        self.uses: dict[str, int] = {}
        self.unused: dict[str, None] = {}  #: tags of `uses` that count 0, in the order they came to 0
        self.top: SortedList[tuple[int, str]] = SortedList()

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
        """`clean`: a tag that no job has any more is forgotten (jobs of reqless)."""
        for tag in tags:
            text = name(tag)
            self._unlist(text, number, jid)
            if clean and text not in self.since:
                self._forget(text)
            else:
                self._use(text, -1)

    def rename(self, number: Number, jid: str, to: str, tags: Iterable[Tag]) -> None:
        """The job continues under another jid, in the same order."""
        for text in dict.fromkeys(map(name, tags)):
            since = self.since.get(text, {}).get(number)
            if since is not None:
                self.jobs[text].take((since, jid, number))
                self.jobs[text].add((since, to, number))

    def lose(self, number: Number, jid: str, tags: Iterable[Tag]) -> None:
        """The job is not found under these tags any more. Their uses stay."""
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
        self._forget(text)
        after = self.uses[text] = before + times
        if after:
            self.top.add((after, text))
            return
        self.unused[text] = None
        if len(self.unused) > UNUSED_AT_MOST:
            self._forget(next(iter(self.unused)))

    def _forget(self, text: str) -> None:
        count = self.uses.pop(text, None)
        if count:
            self.top.take((count, text))
        elif count is not None:
            del self.unused[text]

    def restore(self, since: dict[str, dict[Number, float]], uses: dict[str, int], jobs: Mapping[Number, Job]) -> None:
        self.since = since
        self.jobs = {
            text: SortedList((t, jobs[number].jid, number) for number, t in each.items())
            for text, each in since.items()
        }
        self.uses = uses
        self.unused = {text: None for text, count in uses.items() if not count}
        self.top = SortedList((count, text) for text, count in uses.items() if count)
