"""Who calls, and what the caller may do: authentication, authorization rules, policies on drafts, filtered reading."""
