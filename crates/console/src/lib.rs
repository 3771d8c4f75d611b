//! Metrics, health probes and a web console for controllers, and logging.
//!
//! The console shows which calls run, which keys wait, which fail, and why each key was processed.
//!
//! ```no_run
//! use lariat::console::{Console, Serve};
//! use lariat::SharedControllerFactory;
//!
//! # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = SharedControllerFactory::builder(client).build();
//! factory.serve(Console::on("127.0.0.1:9090"))?;
//! factory.run(5, std::future::pending::<()>()).await?;
//! # Ok(()) }
//! ```
//!
//! | route | response |
//! |---|---|
//! | `/` | the console: a page without external assets |
//! | `/metrics` | metrics for Prometheus: those of [`lariat_controller::metrics`], and the program's [own](Console::metrics) |
//! | `/livez`, `/healthz`, `/readyz` | probes like those of the API server: `?verbose`, `?exclude=caches`, `/readyz/caches` |
//! | `/api/v1/…` | the data of the page as JSON: see [`api`]; `/openapi.json` describes it |
//!
//! [`Console`] sets who may use these routes. No response contains the content of objects.
//!
//! | feature | adds |
//! |---|---|
//! | `server` (default) | [`Console`] and all of the above; without it, only the types of the JSON API |
//! | `operator` (default) | [`Serve`] for operators, with their guards and plans |
//! | `logging` | `logging`: log lines for people or as JSON; it needs no console |
//! | `otlp` | `logging::Otlp`: the export of spans to an OpenTelemetry collector |

// In layers, the lowest first: a module uses only modules above it in this list.

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
