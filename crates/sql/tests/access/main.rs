//! What users may see, as API servers decide it.

mod bench;
mod granted;
mod own;
mod requests;
mod scripted;
