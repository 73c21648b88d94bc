"""The group an operator finds a failure in: the type of the error, or the first words of its message if it has none.

npm's `faktory-worker` sends the error's `code` as its type. A plain `Error` has none, so the type is the word
`undefined`. Other clients send no type at all. All their failures would be one group. The first words of a message name
its cause. Numbers and ids in them are folded, so that the number of groups stays small.
"""

import re
from typing import Final

#: Types that say nothing: JavaScript's undefined and null as text, and what stands for a missing one.
_NO_TYPE: Final = frozenset({"", "undefined", "null", "unknown"})

#: What stands for a missing message.
_NO_MESSAGE: Final = frozenset({"", "undefined", "null", "unknown"})

_WORDS: Final = 5
_CHARS: Final = 80
#: As much of a message as is looked at.
_LOOKED_AT: Final = 500

#: A UUID, a hexadecimal number, a long run of hexadecimal digits with a decimal one in it, or a decimal number.
_VARIES: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b|[0-9]+",
    re.ASCII | re.IGNORECASE,
)


def has_type(group: str) -> bool:
    return group not in _NO_TYPE


def error_group(group: str, message: str) -> str:
    """Up to 5 words and 80 characters of the message, numbers as N, if the type says nothing."""
    if group not in _NO_TYPE:
        return group
    folded = _VARIES.sub("N", message[:_LOOKED_AT])
    words = " ".join(folded.split()[:_WORDS])[:_CHARS]
    return group if words in _NO_MESSAGE else words
