"""Does the maximum of the likelihood of a regression exist? Its design, its outcome, what is to blame, and what to do."""
