//! Sends requests; whoever asks knows what to make of a refusal.

use std::time::Duration;

use kube::Client;
use kube::core::{Status, request};
use serde::de::DeserializeOwned;
use tokio::time;

/// A request, or why there can be no such request.
pub(crate) type Built = Result<http::Request<Vec<u8>>, request::Error>;

/// Why there is no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// Nothing came within this time.
    #[error("no answer from the API server within {0:?}")]
    NoAnswer(Duration),
    /// The API server refused, the connection failed, or the answer is not what it should be.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// Sends requests through a client, which decides about identity, own writes and gates.
///
/// Never through `Client::request`, which logs what it cannot read: that may be the content of an object.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    /// How long an answer may take.
    patience: Option<Duration>,
    /// How many times a request is sent, and how long is waited in between.
    tries: u32,
    pause: Duration,
}

impl Sender {
    /// Sends each request once, and waits for the answer as long as the client does.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            patience: None,
            tries: 1,
            pause: Duration::ZERO,
        }
    }

    /// Gives up an answer that takes longer.
    pub(crate) fn within(self, patience: Duration) -> Self {
        let patience = Some(patience);
        Self { patience, ..self }
    }

    /// Sends a request up to a number of times while it fails in a way that may pass, with pauses in between.
    pub(crate) fn trying(self, tries: u32, pause: Duration) -> Self {
        Self {
            tries,
            pause,
            ..self
        }
    }

    /// Sends a request, and returns the answer as it is written.
    pub(crate) async fn text(&self, request: Built) -> kube::Result<String> {
        let answer = self.send(request, Ok).await;
        answer.map_err(SendError::into_kube)
    }

    /// Sends a request, and reads the answer; one that cannot be read is a failure too.
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
                Err(error) if error.may_pass() => time::sleep(self.pause).await,
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
        let answer = self.client.request_text(request);
        let text = match self.patience {
            Some(patience) => time::timeout(patience, answer)
                .await
                .map_err(|_| SendError::NoAnswer(patience))?,
            None => answer.await,
        };
        Ok(read(text?)?)
    }
}

impl SendError {
    /// Returns whether the server or the way to it is not well, so that the same request may succeed later.
    fn may_pass(&self) -> bool {
        match self {
            Self::NoAnswer(_) => true,
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

/// Returns the Status the API server refused a request with.
pub(crate) fn status_of(error: &kube::Error) -> Option<&Status> {
    match error {
        kube::Error::Api(status) => Some(status),
        _ => None,
    }
}

/// Returns the code the API server refused a request with.
pub(crate) fn code_of(error: &kube::Error) -> Option<u16> {
    status_of(error).map(|status| status.code)
}
