//! Which provider carries a stream: options in user names, candidates, stickiness, retry budget.
