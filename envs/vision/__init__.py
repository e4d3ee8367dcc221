"""Vision: grounding tasks whose answers are right because of the picture."""
