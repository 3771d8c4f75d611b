//! The driver: gives the machines their turns, lets the plan happen, and looks at what is left.

mod driver;
mod happen;

pub(crate) use driver::Driver;
