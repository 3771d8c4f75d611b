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
//! | `server` (default) | [`Console`] and all of the above; without it there are the types of the JSON API |
//! | `operator` (default) | [`Serve`] for operators, with their guards and plans |
//! | `logging` | `logging`: logs for people or as JSON, which need no console |
//! | `otlp` | `logging::Otlp`: spans for an OpenTelemetry collector |

pub mod api;
#[cfg(feature = "logging")]
pub mod logging;
#[cfg(feature = "server")]
mod page;
#[cfg(feature = "server")]
mod recent;
#[cfg(feature = "server")]
mod text;

#[cfg(feature = "server")]
mod members;

#[cfg(feature = "server")]
mod access;
#[cfg(feature = "server")]
mod health;
#[cfg(feature = "server")]
mod samples;

#[cfg(feature = "server")]
mod view;

#[cfg(feature = "server")]
mod server;

#[cfg(feature = "server")]
pub use health::HealthCheck;
#[cfg(feature = "server")]
pub use lariat_http::TokenReviews;
#[cfg(feature = "server")]
pub use server::{Console, ConsoleServer, LogFilter, Observed, Serve, ServeError};

/// The style sheet of the page, which other pages may share.
///
/// It styles elements and classes as the page of the console uses them.
pub const STYLE: &str = include_str!("page/style.css");
