"""Hypothesis strategies: JSON values in every spelling that the grammar allows."""

import json

from hypothesis import strategies as st

blanks = st.text(" \t\r", max_size=2)


numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,6})?", fullmatch=True)


strings = st.builds(
    lambda text, ascii_only: json.dumps(text, ensure_ascii=ascii_only), st.text(max_size=8), st.booleans()
)


constants = st.sampled_from(["true", "false", "null"])


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(lambda items, blank: f"[{blank}{f'{blank},'.join(items)}]", st.lists(inner, max_size=4), blanks)


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.builds(lambda key, blank, value: f"{key}{blank}:{value}", strings, blanks, inner)
    return st.builds(lambda items, blank: f"{{{','.join(items)}{blank}}}", st.lists(pairs, max_size=4), blanks)


spellings = st.recursive(numbers | strings | constants, lambda inner: arrays(inner) | objects(inner), max_leaves=12)
