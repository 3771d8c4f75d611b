//! Sends requests; the callers interpret the errors.

use std::time::Duration;

use kube::Client;
use kube::core::{Status, request};
use serde::de::DeserializeOwned;
use tokio::time;

/// A request, or the error of building it.
pub(crate) type Built = Result<http::Request<Vec<u8>>, request::Error>;

/// The error of a request without a usable answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// No answer came within this time.
    #[error("no answer from the API server within {0:?}")]
    NoAnswer(Duration),
    /// The request was refused, the connection failed, or the answer is malformed.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// Sends requests through a client, which adds the identity, gates and own writes.
///
/// `Client::request` is not used, because it logs answers that it cannot decode, which may be the content of a Secret.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    /// The time limit of one attempt; `None` for the client's.
    timeout: Option<Duration>,
    /// The number of attempts.
    tries: u32,
    /// The pause between two attempts.
    pause: Duration,
}

impl Sender {
    /// Creates a sender that sends each request once, with the client's time limit.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            timeout: None,
            tries: 1,
            pause: Duration::ZERO,
        }
    }

    /// Sets the time limit of each attempt.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        let timeout = Some(timeout);
        Self { timeout, ..self }
    }

    /// Retries requests that fail with a transient error, with a pause in between.
    pub(crate) fn trying(self, tries: u32, pause: Duration) -> Self {
        Self {
            tries,
            pause,
            ..self
        }
    }

    /// Sends a request, and returns the answer as text.
    pub(crate) async fn text(&self, request: Built) -> kube::Result<String> {
        let answer = self.send(request, Ok).await;
        answer.map_err(SendError::into_kube)
    }

    /// Sends a request, and decodes the answer.
    ///
    /// An answer that does not decode is an error too, and is retried.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: Built) -> Result<T, SendError> {
        self.send(request, |text| {
            serde_json::from_str(&text).map_err(kube::Error::SerdeError)
        })
        .await
    }

    async fn send<T>(
        &self,
        request: Built,
        read: impl Fn(String) -> kube::Result<T>,
    ) -> Result<T, SendError> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        for _ in 1..self.tries {
            match self.once(request.clone(), &read).await {
                Err(error) if error.is_transient() => time::sleep(self.pause).await,
                result => return result,
            }
        }
        self.once(request, &read).await
    }

    async fn once<T>(
        &self,
        request: http::Request<Vec<u8>>,
        read: &impl Fn(String) -> kube::Result<T>,
    ) -> Result<T, SendError> {
        // The limit covers the whole answer: a server that sends headers and then stalls would hang otherwise.
        let answer = self.client.request_text(request);
        let text = match self.timeout {
            Some(timeout) => time::timeout(timeout, answer)
                .await
                .map_err(|_| SendError::NoAnswer(timeout))?,
            None => answer.await,
        };
        Ok(read(text?)?)
    }
}

impl SendError {
    /// Returns whether the error is transient: of the server or the connection.
    fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
            // Without a code the connection has failed, or the answer was not that of an API server.
            Self::Kube(error) => code_of(error).is_none_or(|code| code == 429 || code >= 500),
        }
    }

    fn into_kube(self) -> kube::Error {
        match self {
            Self::Kube(error) => error,
            silence => kube::Error::Service(silence.into()),
        }
    }
}

/// Returns the Status in the answer of the API server, if there is one.
pub(crate) fn status_of(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// Returns the HTTP code of the API server's answer, if there is one.
pub(crate) fn code_of(error: &kube::Error) -> Option<u16> {
    status_of(error).map(|status| status.code)
}
