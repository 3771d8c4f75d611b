//! What the end-to-end tests share: a cluster, a namespace each, and a wire that can be watched and cut.
//!
//! With `KUBECONFIG` set the tests run on that cluster, else each on an embedded one of its own. Nothing
//! in them relies on which it is: requests are counted and watches are cut on the client's side.

mod env;
mod kubectl;
mod program;
mod proxy;
mod wire;

pub use env::{Env, eventually, in_namespace};
pub use kubectl::{Ended, Kubectl, RunningCommand, columns, kubectl_path};
pub use program::{example, interrupted, run, signal};
pub use proxy::Proxy;
pub use wire::{Wire, WireLayer};
