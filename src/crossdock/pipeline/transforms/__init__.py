"""What the tables are: pure functions from DataFrame to DataFrame, each beside the columns it makes.

Facts are made from events, a batch at a time, and added; tables of a day are made from all facts of that day. A fact
says nothing about other batches, so a batch needs no state, and late events need no watermark.
"""
