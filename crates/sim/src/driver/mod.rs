//! The driver: gives the machines their turns, executes the plan, and runs the checks.

mod driver;
mod steps;

pub(crate) use driver::Driver;
