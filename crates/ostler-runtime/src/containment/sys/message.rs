//! SEQPACKET sockets that carry one message and its descriptors at a time.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// The most descriptors that one message may carry.
pub const MAX_FDS: usize = 8;

const CONTROL_SPACE: usize = 64;

/// Aligned room for the descriptors of one message.
#[repr(C, align(8))]
struct Control([u8; CONTROL_SPACE]);

/// The descriptors that came with a message, in the order in which they were sent.
#[derive(Debug, Default)]
pub struct Fds {
    slots: [Option<OwnedFd>; MAX_FDS],
    next: usize,
}

impl Fds {
    /// The next descriptor, or an error that says that the sender left one out.
    pub fn take(&mut self) -> io::Result<OwnedFd> {
        let slot = self.slots.get_mut(self.next).and_then(Option::take);
        self.next += 1;
        slot.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The next descriptor when the message says that there is one.
    pub fn take_if(&mut self, present: bool) -> io::Result<Option<OwnedFd>> {
        if present { self.take().map(Some) } else { Ok(None) }
    }
}

/// Two ends of a SEQPACKET connection, both closed on exec.
pub fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    socket_pair(libc::SOCK_SEQPACKET)
}

fn socket_pair(kind: libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which then belong to this process.
    unsafe {
        check(libc::socketpair(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr()))?;
        Ok((OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])))
    }
}

/// Ends a connection for all who hold a copy of this end.
pub fn hang_up(socket: BorrowedFd<'_>) {
    // SAFETY: plain numbers. It fails only where the connection has already ended.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Sends one message. Never blocks, and never raises SIGPIPE.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(fds.len() <= MAX_FDS, "one message carries at most 8 descriptors");
    let mut control = Control([0; CONTROL_SPACE]);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all pointers outlive the call; the control buffer has room for `MAX_FDS`
    // descriptors (16 bytes of header and 32 of content) and is aligned for its header.
    let sent = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        if !fds.is_empty() {
            let size = size_of_val(fds) as libc::c_uint;
            header.msg_control = (&raw mut control).cast();
            header.msg_controllen = libc::CMSG_SPACE(size) as _;
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(first).cast::<RawFd>();
            for (index, fd) in fds.iter().enumerate() {
                data.add(index).write_unaligned(fd.as_raw_fd());
            }
        }
        libc::sendmsg(
            socket.as_raw_fd(),
            &raw const header,
            libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives one message without waiting: its length (0 at the end of the connection) and its
/// descriptors.
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Fds)> {
    match receive_once(socket, bytes) {
        // Said once, ahead of the messages still queued, when the peer ended with some unread.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => receive_once(socket, bytes),
        other => other,
    }
}

fn receive_once(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Fds)> {
    let mut control = Control([0; CONTROL_SPACE]);
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: as in `send`; the kernel writes within the two buffers.
    let (received, header) = unsafe {
        let mut header: libc::msghdr = std::mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut control).cast();
        header.msg_controllen = CONTROL_SPACE as _;
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        let received = libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags);
        (received, header)
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((received as usize, collect_fds(&header)))
}

fn collect_fds(header: &libc::msghdr) -> Fds {
    let mut fds = Fds::default();
    let mut count = 0;
    // SAFETY: the kernel has filled the header that the macros walk over, and every descriptor
    // in it now belongs to this process.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(header);
        while !part.is_null() {
            if (*part).cmsg_level == libc::SOL_SOCKET && (*part).cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(part).cast::<RawFd>();
                let size = (*part).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..size / size_of::<RawFd>() {
                    let fd = OwnedFd::from_raw_fd(data.add(index).read_unaligned());
                    // The control buffer has room for no more than `MAX_FDS` and a pair of
                    // padding slots; one too many is closed here by its drop.
                    if let Some(slot) = fds.slots.get_mut(count) {
                        *slot = Some(fd);
                    }
                    count += 1;
                }
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
    fds
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_was_sent_before_the_peer_ended_is_still_read() {
        let (near, far) = message_pair().unwrap();
        send(near.as_fd(), b"never read", &[]).unwrap();
        send(far.as_fd(), b"last words", &[]).unwrap();
        drop(far);
        let mut bytes = [0; 32];
        let (length, _) = receive(near.as_fd(), &mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"last words");
        let (length, _) = receive(near.as_fd(), &mut bytes).unwrap();
        assert_eq!(length, 0);
    }

    #[test]
    fn descriptors_arrive_in_order() {
        let (near, far) = message_pair().unwrap();
        let (one, two) = message_pair().unwrap();
        send(near.as_fd(), b"x", &[one.as_fd(), two.as_fd()]).unwrap();
        drop((one, two));
        let (_, mut fds) = receive(far.as_fd(), &mut [0; 8]).unwrap();
        let (one, two) = (fds.take().unwrap(), fds.take().unwrap());
        assert!(fds.take().is_err());
        send(one.as_fd(), b"between them", &[]).unwrap();
        assert_eq!(receive(two.as_fd(), &mut [0; 32]).unwrap().0, 12);
    }
}
