//! The guard: budgets for what handlers write.
