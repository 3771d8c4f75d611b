//! The SQL cache: how it is filled and written, and what typical queries cost, beside what a program does without it.
//!
//! A run measures all its cases in one process, because filling takes longer than asking.

mod cached;
mod naive;
mod questions;
mod sql;

pub(crate) use sql::{CASES, SUBJECTS, changes, plan, run, storms};
