//! Apply: the objects an owner wants, and no others.

mod owner;
