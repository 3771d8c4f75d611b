//! A keyring: data keys, and the envelope in which they are stored.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::stored;
use crate::context::Context;
use crate::data_key::{DataKey, Salt};
use crate::error::SealError;
use crate::id::{DataKeyId, KeyId};
use crate::secret::{Hasher, LARGEST, NONCE, NoRandomness, Secret, TAG, random};
use crate::stream::{OpenedReader, SealedWriter};
use crate::wrapper::{KeyWrapper, WrappedKey};

/// The first byte of a sealed value.
const VALUE: u8 = 1;

/// The size of the part before the ciphertext: format, data key, salt, nonce.
const HEAD: usize = 1 + 4 + 12 + NONCE;

/// Seals and opens data with keys that are stored encrypted.
///
/// A keyring is immutable: [`rotated`](Self::rotated), [`rewrapped`](Self::rewrapped) and
/// [`without_old`](Self::without_old) return a new one, whose [stored form](Self::stored) must be saved before it is
/// used. Data that was sealed with a keyring that is not saved is lost with the process. Keyrings that share data keys
/// can open each other's data.
///
/// Sealing and opening allocate only what they return, and never wait.
///
/// # Rotation
///
/// - Of the wrapping key: give the new and the old key to the wrapper, and save [`rewrapped`](Self::rewrapped) if
///   [`is_wrapped_by`](Self::is_wrapped_by) returns `false`. Sealed data and its data keys are not affected: who has
///   the old wrapping key and an earlier stored form can still open the data.
/// - Of the data key: save [`rotated`](Self::rotated). New data is sealed with the new key; older data can still be
///   opened. No number of values makes this necessary, because a data key encrypts no value itself.
/// - After a key has leaked: do both, seal everything again that is not [of the current data key](Self::data_key_of),
///   and save [`without_old`](Self::without_old).
///
/// ```
/// use lariat::seal::{Context, Keyring, LocalKeys};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = |_: &[u8]| ();
/// # let (old, new) = ((0..32).collect::<Vec<u8>>(), (1..33).collect::<Vec<u8>>());
/// let mut keyring = Keyring::create(&LocalKeys::from_bytes(&old)?).await?;
/// let context = Context::new("example");
/// let sealed = keyring.seal(&context, b"a text")?;
///
/// let keys = LocalKeys::from_bytes(&new)?.with_old(LocalKeys::from_bytes(&old)?);
/// keyring = Keyring::load(keyring.stored(), &keys).await?;
/// if !keyring.is_wrapped_by(&keys) {
///     keyring = keyring.rewrapped(&keys).await?;
///     store(keyring.stored());
/// }
/// // The old key is not needed any more.
/// let keyring = Keyring::load(keyring.stored(), &LocalKeys::from_bytes(&new)?).await?;
/// assert_eq!(*keyring.open(&context, &sealed)?, b"a text");
/// # Ok(()) }
/// ```
pub struct Keyring {
    /// The stored form.
    stored: Box<[u8]>,
    /// The key that encrypts the data keys.
    envelope: Arc<Envelope>,
    /// The key of hashes.
    hashes: Arc<Hashes>,
    /// The data keys, oldest first. Never empty; the last one seals.
    data: Vec<Arc<DataKey>>,
}

/// The key that encrypts the data keys.
struct Envelope {
    /// The key.
    key: Secret,
    /// The key, encrypted by the wrapper.
    wrapped: WrappedKey,
}

/// The key of hashes.
struct Hashes {
    /// The key.
    key: Secret,
    /// The key in the form that hashes.
    hasher: Hasher,
}

impl Envelope {
    /// Creates and wraps a new key.
    async fn new(wrapper: &dyn KeyWrapper) -> Result<Arc<Self>, SealError> {
        let key = Secret::random().map_err(|NoRandomness| SealError::NoRandomness)?;
        let wrapped = wrapper.wrap(key.bytes()).await?;
        Ok(Arc::new(Self { key, wrapped }))
    }
}

impl Hashes {
    /// Creates a keyring and its stored form.
    fn new(key: Secret) -> Arc<Self> {
        let hasher = Hasher::new(&key);
        Arc::new(Self { key, hasher })
    }
}

impl Keyring {
    /// Creates a keyring with a new data key.
    ///
    /// # Errors
    ///
    /// [`SealError::Wrap`] if the wrapper fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses the new keys, which have not sealed anything.
    pub async fn create(wrapper: &dyn KeyWrapper) -> Result<Self, SealError> {
        let envelope = Envelope::new(wrapper).await?;
        let hashes = Secret::random().map_err(|NoRandomness| SealError::NoRandomness)?;
        Self::new(envelope, Hashes::new(hashes), vec![new_key(&[])?])
    }

    /// Loads a keyring from its [stored form](Self::stored).
    ///
    /// # Errors
    ///
    /// [`SealError::Wrap`] if the wrapper fails, for example for lack of the right key
    /// ([`WrongKey`](crate::WrapError::WrongKey)). [`SealError::Keyring`] if the bytes were changed or cut off.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn load(stored: &[u8], wrapper: &dyn KeyWrapper) -> Result<Self, SealError> {
        let closed = stored::read(stored)?;
        let unwrapped = wrapper.unwrap(&closed.wrapped).await?;
        let key = Secret::copied(&*unwrapped).ok_or(SealError::Keyring("the length of its key"))?;
        let keys = closed.open(&key)?;
        let wrapped = closed.wrapped;
        let envelope = Arc::new(Envelope { key, wrapped });
        Ok(Self {
            stored: stored.into(),
            envelope,
            hashes: Hashes::new(keys.hashes),
            data: keys.data,
        })
    }

    fn new(
        envelope: Arc<Envelope>,
        hashes: Arc<Hashes>,
        data: Vec<Arc<DataKey>>,
    ) -> Result<Self, SealError> {
        let stored = stored::write(&envelope.wrapped, &envelope.key, &hashes.key, &data)?;
        Ok(Self {
            stored,
            envelope,
            hashes,
            data,
        })
    }

    /// Returns the bytes from which the keyring can be [loaded](Self::load).
    ///
    /// All keys in them are encrypted. Every call returns the same bytes.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Returns a keyring with one more data key, which seals new data.
    ///
    /// # Errors
    ///
    /// [`SealError::NoRandomness`] if the operating system provides no random numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::seal::{Context, Keyring, LocalKeys};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keyring = Keyring::create(&LocalKeys::from_bytes(&(0..32).collect::<Vec<u8>>())?).await?;
    /// let rotated = keyring.rotated()?;
    /// assert_ne!(rotated.current_data_key(), keyring.current_data_key());
    ///
    /// let context = Context::new("example");
    /// let sealed = keyring.seal(&context, b"older data")?;
    /// assert_eq!(*rotated.open(&context, &sealed)?, b"older data");
    /// # Ok(()) }
    /// ```
    pub fn rotated(&self) -> Result<Self, SealError> {
        let mut data = self.data.clone();
        data.push(new_key(&data)?);
        Self::new(Arc::clone(&self.envelope), Arc::clone(&self.hashes), data)
    }

    /// Returns a keyring with the same data keys under a new wrapped key.
    ///
    /// Only the wrapper's current key can open its stored form. The stored form of this keyring is of no help in that.
    ///
    /// # Errors
    ///
    /// [`SealError::Wrap`] if the wrapper fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn rewrapped(&self, wrapper: &dyn KeyWrapper) -> Result<Self, SealError> {
        let envelope = Envelope::new(wrapper).await?;
        Self::new(envelope, Arc::clone(&self.hashes), self.data.clone())
    }

    /// Returns a keyring with only the data key that seals new data.
    ///
    /// It cannot open the data of other data keys.
    ///
    /// # Errors
    ///
    /// [`SealError::NoRandomness`] if the operating system provides no random numbers.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::seal::{Context, Keyring, LocalKeys};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keyring = Keyring::create(&LocalKeys::from_bytes(&(0..32).collect::<Vec<u8>>())?).await?;
    /// let context = Context::new("example");
    /// let (sealed, rotated) = (keyring.seal(&context, b"a text")?, keyring.rotated()?);
    ///
    /// let renewed = rotated.seal(&context, &rotated.open(&context, &sealed)?)?;
    /// let alone = rotated.without_old()?;
    /// assert_eq!(*alone.open(&context, &renewed)?, b"a text");
    /// assert!(alone.open(&context, &sealed).is_err());
    /// # Ok(()) }
    /// ```
    pub fn without_old(&self) -> Result<Self, SealError> {
        let data = vec![Arc::clone(self.current())];
        Self::new(Arc::clone(&self.envelope), Arc::clone(&self.hashes), data)
    }

    /// Returns the number of data keys that only open earlier data.
    ///
    /// [`without_old`](Self::without_old) drops them.
    #[must_use]
    pub fn old_data_keys(&self) -> usize {
        self.data.len() - 1
    }

    /// Returns whether the wrapper's current key can open the stored form.
    #[must_use]
    pub fn is_wrapped_by(&self, wrapper: &dyn KeyWrapper) -> bool {
        *self.wrapped_by() == wrapper.current()
    }

    /// Returns the id of the key that can open the stored form.
    #[must_use]
    pub fn wrapped_by(&self) -> &KeyId {
        self.envelope.wrapped.key_id()
    }

    /// Iterates over the data keys, oldest first.
    pub fn data_keys(&self) -> impl Iterator<Item = DataKeyId> + '_ {
        self.data.iter().map(|key| key.id)
    }

    /// Returns the data key that seals new data.
    #[must_use]
    pub fn current_data_key(&self) -> DataKeyId {
        self.current().id
    }

    /// Returns the data key that sealed a value or a stream.
    ///
    /// No keyring is needed. The result is not authenticated until the data has been opened.
    ///
    /// # Errors
    ///
    /// [`SealError::Malformed`] or [`SealError::UnknownFormat`] if the bytes are not sealed data.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::seal::{Context, Keyring, LocalKeys};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keyring = Keyring::create(&LocalKeys::from_bytes(&(0..32).collect::<Vec<u8>>())?).await?;
    /// let sealed = keyring.seal(&Context::new("example"), b"a text")?;
    /// assert_eq!(Keyring::data_key_of(&sealed)?, keyring.current_data_key());
    /// # Ok(()) }
    /// ```
    pub fn data_key_of(sealed: &[u8]) -> Result<DataKeyId, SealError> {
        // Values and streams begin with a format and the id of the data key.
        match sealed.split_first() {
            Some((&(VALUE | crate::stream::FORMAT), rest)) => {
                let id = rest.first_chunk().ok_or(CUT_OFF)?;
                Ok(DataKeyId(*id))
            }
            Some((format, _)) => Err(SealError::UnknownFormat(*format)),
            None => Err(CUT_OFF),
        }
    }

    /// Encrypts a value, which can be opened only with the same context.
    ///
    /// The result is 45 bytes longer than the value. Sealing a value twice yields different bytes.
    ///
    /// # Errors
    ///
    /// [`SealError::NoRandomness`], and [`SealError::TooLarge`] for more than 64 GiB.
    pub fn seal(&self, context: &Context, value: &[u8]) -> Result<Vec<u8>, SealError> {
        if value.len() as u64 > LARGEST {
            return Err(SealError::TooLarge(value.len()));
        }
        // Random rather than counted: see the crate's documentation.
        let salt: Salt = random().map_err(|NoRandomness| SealError::NoRandomness)?;
        let nonce = random::<NONCE>().map_err(|NoRandomness| SealError::NoRandomness)?;
        let key = self.current();
        let mut sealed = Vec::with_capacity(HEAD + value.len() + TAG);
        sealed.push(VALUE);
        sealed.extend_from_slice(&key.id.0);
        sealed.extend_from_slice(&salt);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(value);
        let tag = key
            .for_value(&salt)
            .seal(nonce, context, &mut sealed[HEAD..])
            .ok_or(SealError::TooLarge(value.len()))?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// Decrypts a value that was sealed with the same context.
    ///
    /// # Errors
    ///
    /// [`SealError::Rejected`] if it was changed or has another context, [`SealError::UnknownDataKey`] if another
    /// keyring sealed it, [`SealError::Malformed`] or [`SealError::UnknownFormat`] if it is other data.
    pub fn open(&self, context: &Context, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let key = self.data_key(Self::data_key_of(sealed)?)?;
        // `data_key_of` accepts streams too.
        if sealed[0] != VALUE {
            return Err(SealError::Malformed("it is a stream"));
        }
        let parts = || {
            let (_, rest) = sealed.split_at_checked(5)?;
            let (salt, rest) = rest.split_first_chunk()?;
            let (nonce, rest) = rest.split_first_chunk()?;
            (rest.len() >= TAG).then_some((salt, nonce, rest))
        };
        let (salt, nonce, rest) = parts().ok_or(CUT_OFF)?;
        // Overwritten on drop, also if the tag turns out to be wrong.
        let mut value = Zeroizing::new(rest.to_vec());
        let opened = key.for_value(salt).open(*nonce, context, &mut value);
        let length = opened.map_err(|_| SealError::Rejected)?.len();
        value.truncate(length);
        Ok(value)
    }

    /// Returns a writer that encrypts in parts of 64 KiB and writes to another writer.
    ///
    /// Call [`SealedWriter::finish`] at the end: an unfinished stream cannot be opened.
    ///
    /// # Errors
    ///
    /// [`SealError::NoRandomness`] if the operating system provides no random numbers.
    pub fn seal_stream<W: Write>(
        &self,
        context: &Context,
        to: W,
    ) -> Result<SealedWriter<W>, SealError> {
        SealedWriter::new(self.current(), *context, to)
    }

    /// Returns a reader of a stream that was sealed with the same context.
    ///
    /// The bytes that it returns are authentic, but the rest of the stream may still be damaged. Only the end of the
    /// stream proves that it is complete.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), if the beginning cannot be read. Errors of the reader wrap a [`SealError`].
    pub fn open_stream<R: Read>(
        &self,
        context: &Context,
        from: R,
    ) -> Result<OpenedReader<R>, SealError> {
        OpenedReader::new(*context, from, |id| self.data_key(id).cloned())
    }

    /// Hashes bytes with a key of the keyring, to look up sealed values by equality.
    ///
    /// The same bytes and context have the same hash after restarts and after rotations of any key. Hashes reveal which
    /// values of a context are equal, and nothing else. The hash is HMAC-SHA256, cut to 128 bits.
    ///
    /// ```
    /// use lariat::seal::{Context, Keyring, LocalKeys};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let keyring = Keyring::create(&LocalKeys::from_bytes(&(0..32).collect::<Vec<u8>>())?).await?;
    /// let column = Context::new("users").and("email");
    /// let hash = keyring.keyed_hash(&column, b"a@example.com");
    /// assert_eq!(hash, keyring.rotated()?.keyed_hash(&column, b"a@example.com"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn keyed_hash(&self, context: &Context, bytes: &[u8]) -> [u8; 16] {
        self.hashes.hasher.hash(context, bytes)
    }

    /// Returns the data key that seals new data.
    fn current(&self) -> &Arc<DataKey> {
        self.data.last().expect("there is always a data key")
    }

    /// Returns the data key with an id.
    fn data_key(&self, id: DataKeyId) -> Result<&Arc<DataKey>, SealError> {
        let key = self.data.iter().find(|key| key.id == id);
        key.ok_or(SealError::UnknownDataKey(id))
    }
}

/// The error of data that ends too early.
const CUT_OFF: SealError = SealError::Malformed("it is cut off");

/// Creates a data key with an id that no other has.
fn new_key(others: &[Arc<DataKey>]) -> Result<Arc<DataKey>, SealError> {
    loop {
        let secret = Secret::random().map_err(|NoRandomness| SealError::NoRandomness)?;
        let key = DataKey::new(secret);
        // Ids have 32 bits, so two keys may get the same one.
        if others.iter().all(|other| other.id != key.id) {
            return Ok(Arc::new(key));
        }
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data_keys: Vec<_> = self.data_keys().collect();
        f.debug_struct("Keyring")
            .field("wrapped_by", self.wrapped_by())
            .field("data_keys", &data_keys)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
