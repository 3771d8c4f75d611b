//! Status and conditions.
