//! The console of `lariat cluster --console`: a page and a JSON API of the cluster.
//!
//! | route | answers |
//! |---|---|
//! | `GET /` | the page, whose files are under `/assets/` |
//! | `GET /api/v1/state` | [what the page shows](state); `?watch=true` sends it every second, as server-sent events |
//! | `POST /api/v1/faults` | switches a fault on: a rule in the JSON of the cluster's admin endpoint |
//! | `POST /api/v1/faults/isolate` | cuts a client off: `{"client": "…", "silent": false}` |
//! | `DELETE /api/v1/faults`, `/api/v1/faults/ID` | removes all faults, or one |
//! | `POST /api/v1/watches/cut`, `/api/v1/watches/end` | breaks all open watches, or ends them |
//! | `POST /api/v1/history/expire` | forgets the history: watches from earlier versions are answered 410 |
//!
//! Errors are `Status` objects.

mod access;
mod actions;
mod options;
mod page;
mod query;
mod reply;
mod server;
mod state;

pub(super) use options::ConsoleOptions;
pub(super) use server::Console;
