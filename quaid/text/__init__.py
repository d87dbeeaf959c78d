"""Strings alone: dates in them, stop words, invisible characters, and recalled text quoted so that nobody obeys it.
It may touch `errors` and `model`; no file, clock or network.
Its story begins in `dates.find_dates` for what is read and in `quoting.neutralise` for what is shown.
"""
