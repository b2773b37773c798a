"""The layouts a job may be cut by, and the best of them.

It ranks what `estimate` says of each and knows no formula of its own.
Read first: `search.Plan`, then `space` (every legal layout as columns), `cuts` (which degrees are legal),
`offers` (what frameworks let a user choose) and `table_search` (the best of one table); then `comparison`,
`break_even` and `network_wall`, which put one job on several clusters.
"""

from linkwise.job.offers import EVERYTHING, Offer
from linkwise.search.comparison import Comparison, compare
from linkwise.search.search import Plan, plan
from linkwise.search.space import Space, search_space

__all__ = ["EVERYTHING", "Comparison", "Offer", "Plan", "Space", "compare", "plan", "search_space"]
