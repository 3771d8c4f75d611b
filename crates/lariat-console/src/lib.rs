//! Metrics, probes and a console for controllers: what runs, what waits, and why.
//!
//! ```no_run
//! use lariat_console::{Console, Serve};
//! use lariat_controller::SharedControllerFactory;
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedControllerFactory::builder(client).build();
//! factory.serve(Console::on("127.0.0.1:9090"))?;
//! factory.run(5, std::future::pending::<()>()).await?;
//! # Ok(()) }
//! ```
//!
//! | route | answers |
//! |---|---|
//! | `/` | the console, a page without external assets |
//! | `/metrics` | metrics for Prometheus: those of [`lariat_controller::metrics`], and the program's [own](Console::metrics) |
//! | `/livez`, `/healthz`, `/readyz` | probes in the form of Kubernetes' own; `?verbose`, `?exclude=caches`, `/readyz/caches` |
//! | `/api/v1/…` | what the page shows, as JSON: see [`api`]; `/openapi.json` describes it |
//!
//! [`Console`] says who may use them. No answer has contents of objects.
//!
//! | feature | adds |
//! |---|---|
//! | `operator` (default) | [`Serve`] for operators, with their guards and plans |

pub mod api;
mod page;
mod recent;
mod text;

mod members;

mod access;
mod health;
mod samples;

mod view;

mod server;

pub use health::HealthCheck;
pub use lariat_http::TokenReviews;
pub use server::{Console, ConsoleServer, LogFilter, Observed, Serve, ServeError};
