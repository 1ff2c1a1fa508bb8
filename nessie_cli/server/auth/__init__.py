"""Authentication and authorization: tokens, rules, policies on drafts, filtered reading."""
