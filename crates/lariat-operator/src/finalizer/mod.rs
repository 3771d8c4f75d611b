//! Finalizers: cleanup before an object goes.
