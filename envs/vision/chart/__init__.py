"""Charts: what they show as data, how they are drawn, and the task of reading them."""
