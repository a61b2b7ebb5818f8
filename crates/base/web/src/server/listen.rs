//! Listening sockets: one a core on the same port, and nobody else's.
//!
//! With SO_REUSEPORT the kernel spreads new connections over the sockets by a hash of their addresses, so that
//! cores share neither a queue nor a lock. The same option would let a second process join in silently and
//! take half of the connections. Therefore the port is bound once without it: if another process listens
//! there, that fails with "address in use". Port 0 is resolved by the same step.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::{ACCEPT_BACKLOG, BIND_ATTEMPTS};

/// So many listeners on one address, for a thread each, and the address with its port known.
pub fn bind(address: SocketAddr, count: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    let mut attempts = if address.port() == 0 { BIND_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let bound = probe(address).and_then(|found| Ok((found, share(found, count)?)));
        // A free port that was found can be lost again before it is bound; a given one is not tried twice.
        match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            other => return other,
        }
    }
}

/// Binds the address for a moment, as its only owner.
fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = socket(address)?;
    socket.bind(&address.into())?;
    socket.listen(1)?;
    socket.local_addr()?.as_socket().ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

fn share(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    (0..count).map(|_| listener(address)).collect()
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // Inherited by every connection on Linux; set again on each for systems where it is not.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections in TIME_WAIT; a listener elsewhere still refuses the bind.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_once_and_shared_by_all_cores() {
        let (address, listeners) = bind("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        assert_ne!(address.port(), 0);
        assert!(listeners.iter().all(|listener| listener.local_addr().unwrap() == address));
    }

    #[test]
    fn a_second_owner_is_refused() {
        let (address, listeners) = bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let second = bind(address, 2);
        assert_eq!(second.map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::AddrInUse));
        drop(listeners);
        bind(address, 1).unwrap();
    }
}
