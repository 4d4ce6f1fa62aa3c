//! The server's end of a message socket, and pidfds, on the tokio runtime.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::children;
use super::sys::{self, Fds};
use super::wire::{self, Message, Received};

#[derive(Debug)]
pub struct Channel {
    socket: AsyncFd<OwnedFd>,
}

impl Channel {
    /// A connected pair: the server's end, and the far end to be sent to another process.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (near, far) = sys::message_pair()?;
        let socket = sys::watch_async(near)?;
        Ok((Channel { socket }, far))
    }

    /// Waits for room if the other side is behind. Dropping the future sends nothing.
    pub async fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let sent =
            self.socket.async_io(Interest::WRITABLE, |socket| message.send(socket.as_fd(), fds));
        sent.await
    }

    /// Sends if there is room now.
    pub fn try_send(&self, message: &Message) -> io::Result<()> {
        message.send(self.socket.as_fd(), &[])
    }

    /// The next message; None when the other side is gone. Dropping the future loses nothing.
    pub async fn receive(&self) -> io::Result<Option<(Message, Fds)>> {
        loop {
            let mut ready = self.socket.readable().await?;
            match wire::receive(ready.get_inner().as_fd()) {
                Received::Message(message, fds) => return Ok(Some((message, fds))),
                Received::Closed => return Ok(None),
                Received::Unknown => {}
                Received::Nothing => ready.clear_ready(),
            }
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // A program that embeds this one may have forked: the other side must see the end even
        // while such a child holds a copy.
        sys::hang_up(self.socket.as_fd());
    }
}

/// A process that can be signalled and waited for without ever meaning another one.
#[derive(Debug)]
pub struct PidFd {
    fd: AsyncFd<OwnedFd>,
}

impl PidFd {
    pub fn new(fd: OwnedFd) -> io::Result<PidFd> {
        let fd = sys::watch_async(fd)?;
        Ok(PidFd { fd })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The number while the process is not reaped, for display.
    pub fn pid(&self) -> Option<i32> {
        children::pid_behind(&children::own_fdinfo().ok()?, self.fd.get_ref())
    }

    /// Resolves when the process has ended. Any number of tasks may wait.
    pub async fn ended(&self) {
        // The descriptor stays ready, so its readiness is never cleared. An error means that the
        // runtime is shutting down, and with it whoever waits.
        let _ = self.fd.readable().await;
    }

    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::pidfd_signal(self.as_fd(), signal, 0)
    }
}
