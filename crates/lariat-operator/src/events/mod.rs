//! Events: what happened, for the people who look at objects.
