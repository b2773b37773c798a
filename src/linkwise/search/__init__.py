"""The layouts a job may be cut by, and the best of them.

It ranks what `estimate` says of each and knows no formula of its own; it chooses no hardware.
Read first: `search.Plan`, then `space` (every legal layout as columns), `cuts` (which degrees are legal),
`offers` (what frameworks let a user choose) and `table_search` (the best of one table).
"""

from linkwise.job.offers import EVERYTHING, Offer
from linkwise.search.search import Plan, plan
from linkwise.search.space import Space, search_space

__all__ = ["EVERYTHING", "Offer", "Plan", "Space", "plan", "search_space"]
