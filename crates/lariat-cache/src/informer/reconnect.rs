//! Why requests are made again.

/// Why a reflector asked the API server anew, after a list or a watch that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reconnect {
    /// A watch ended as watches do: servers end them after some minutes.
    Closed,
    /// The version to go on from is not in the API server's history any more (410), so everything is read again.
    Expired,
    /// Nothing came, for so long that the connection must be dead.
    Silent,
    /// The API server refused the request, or does not serve the kind.
    Refused,
    /// The API server was not reached, or its answer broke off, or is not what the API says it is.
    Failed,
}

impl Reconnect {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Closed,
        Self::Expired,
        Self::Silent,
        Self::Refused,
        Self::Failed,
    ];

    /// Returns the word for it, in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Expired => "expired",
            Self::Silent => "silent",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
