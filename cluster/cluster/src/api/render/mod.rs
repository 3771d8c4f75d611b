//! Answers of verbs as responses, in the form their clients asked for.

mod list;
mod object;
mod renderer;
mod scale;
mod watch;

pub(super) use renderer::{Renderer, check, check_shape};
