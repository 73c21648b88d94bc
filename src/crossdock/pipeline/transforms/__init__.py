"""The tables as pure functions from DataFrame to DataFrame, each next to its schema.

Facts are computed from the events of a batch and appended. Views of a day are computed from all facts of that day.
Facts do not depend on other batches, so a batch needs no state, and late events need no watermark.
"""
