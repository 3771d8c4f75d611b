//! What is handed to other threads stays `Send` and `Sync`. This test runs in the compiler.

use lariat_seal::{
    Context, KeyError, KeyWrapper, Keyring, LocalKeys, OpenedReader, SealError, SealedWriter,
    Sealing, WrapError,
};

const fn is_send_and_sync<T: Send + Sync + 'static>() {}
const fn is_error<T: std::error::Error + Send + Sync + 'static>() {}

const _: () = {
    is_send_and_sync::<Keyring>();
    is_send_and_sync::<LocalKeys>();
    is_send_and_sync::<Sealing>();
    is_send_and_sync::<Context>();
    is_send_and_sync::<Box<dyn KeyWrapper>>();
    is_send_and_sync::<SealedWriter<Vec<u8>>>();
    is_send_and_sync::<OpenedReader<std::io::Empty>>();
    is_error::<SealError>();
    is_error::<WrapError>();
    is_error::<KeyError>();
};

fn is_send<T: Send>(_: T) {}

#[test]
fn futures_can_move_between_threads() {
    let wrapper: Box<dyn KeyWrapper> = Box::new(crate::key(1));
    is_send(Keyring::create(&*wrapper));
    is_send(Keyring::load(b"", &*wrapper));
}
