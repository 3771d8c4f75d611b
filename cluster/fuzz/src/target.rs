//! A target.

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name, which is that of its folders in `corpus` and `findings`, too.
    pub name: &'static str,
    /// Panics if something does not hold for an input.
    pub run: fn(&[u8]),
}
