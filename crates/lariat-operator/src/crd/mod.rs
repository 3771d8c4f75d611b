//! Custom resource definitions: installed, and established.
