//! Permissions: what the operator needs to be allowed, and whether it is.
