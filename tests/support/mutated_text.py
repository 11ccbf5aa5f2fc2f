"""A mistake in a source: some words that stand in it once, and what comes in their place."""

import re


def places_of(words, text):
    """Where a source has these words, whatever the spaces and #pragmas between them: a match each."""
    return list(re.finditer(r"(?:\s|#pragma.*\n)+".join(re.escape(word) for word in words.split()), text))


def mutated_text(place, after):
    return place.string[: place.start()] + after + place.string[place.end() :]
