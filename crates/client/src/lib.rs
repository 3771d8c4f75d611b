//! Kubernetes clients for long-lived programs: a transport below kube's client, and services around it.
//!
//! [`connect`], [`from_kubeconfig`] and [`from_config`] create a [`kube::Client`]. Its watches share HTTP/2
//! connections, dead connections and servers that only answer pings are replaced, and credentials are renewed before
//! they expire. Kubeconfigs and proxies mean what they mean to kubectl.
//!
//! ```no_run
//! use kube::Client;
//! use lariat_client::{Answering, CountedClient};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let counted = CountedClient::new(lariat_client::connect().await?);
//! // Answers end within 65 seconds, and requests that are refused for now are sent again.
//! let client = Client::new(Answering::new(counted.clone(), Answering::TIMEOUT), "default");
//! println!("{}", client.apiserver_version().await?.git_version);
//! println!("{:?}", counted.status().counts);
//! # Ok(()) }
//! ```
//!
//! Around any client of kube, [`Answering`] is a `tower` service that sends a request until there is an answer, while
//! its [`Fenced`] extension admits it; [`CountedClient`] counts requests; [`separate`] gives another runtime
//! connections of its own. [`ClientIdentity`] is whom requests say they come from.
//!
//! | feature | adds |
//! |---|---|
//! | `rustls-tls` | TLS, and with it HTTP/2, by rustls and ring |

// Texts, times and requests.
mod clock;
mod identity;
mod pem;
mod request;
mod requests;
mod single;
mod status;
mod timed;
mod url;

// Configurations and credentials.
mod kubeconfig;
mod proxy;

mod credentials;

// Connections.
mod dial;
mod driven;
mod socket;
mod tls;

mod liveness;
mod pool;

mod multiplex;

// Clients.
mod answer;
mod connect;
mod explained;
mod separate;

pub use answer::{Answering, Fenced, Unanswered};
pub use connect::{
    ConnectError, connect, from_config, from_kubeconfig, from_kubeconfig_file, from_kubeconfig_text,
};
pub use identity::{ClientIdentity, IdentityError};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use kubeconfig::fuzzing;
/// The right to write, which an [`Answering`] service asks.
#[doc(no_inline)]
pub use lariat_core::Fence;
pub use multiplex::Http2;
pub use pool::Connection;
pub use requests::{CountedClient, RequestCount, RequestStatus, RequestTimes};
pub use separate::separate;
pub use single::Single;
pub use status::{is_missing, is_too_large, retry_after};
pub use timed::AnswerBody;
