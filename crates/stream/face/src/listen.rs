//! Sockets: a UDP socket and a TCP listener for each worker, all on one port number that nobody else has.
//!
//! With SO_REUSEPORT the kernel spreads connections over the workers' sockets by a hash of the addresses, so
//! that workers share neither a queue nor a lock, and a client's datagrams keep reaching the worker that
//! knows it. The same option would let a second process join in silently and take half of the connections.
//! Therefore the port is bound once without it, for UDP and for TCP: if another process listens there, that
//! fails with "address in use". Port 0 is resolved by the same step.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::{ACCEPT_BACKLOG, BIND_ATTEMPTS, UDP_BUFFER_BYTES, UDP_BUFFER_BYTES_LEAST};

/// The sockets of one worker.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) udp: UdpSocket,
    pub(crate) tcp: TcpListener,
}

/// Sockets for so many workers, and the address with its port known.
pub(crate) fn bind(address: SocketAddr, workers: usize) -> io::Result<(SocketAddr, Vec<Sockets>)> {
    let mut attempts = if address.port() == 0 { BIND_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let bound = probe(address).and_then(|found| Ok((found, share(found, workers)?)));
        // A free port that was found can be lost again before it is bound; a given one is not tried twice.
        match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            other => return other,
        }
    }
}

/// Binds the address for a moment, as its only owner, for TCP and for UDP.
fn probe(address: SocketAddr) -> io::Result<SocketAddr> {
    let tcp = tcp(address)?;
    tcp.bind(&address.into())?;
    tcp.listen(1)?;
    let unknown = || io::Error::from(io::ErrorKind::AddrNotAvailable);
    let found = tcp.local_addr()?.as_socket().ok_or_else(unknown)?;
    udp(found)?.bind(&found.into())?;
    Ok(found)
}

fn share(address: SocketAddr, workers: usize) -> io::Result<Vec<Sockets>> {
    (0..workers).map(|_| Ok(Sockets { udp: datagrams(address)?, tcp: listener(address)? })).collect()
}

fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = tcp(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}

fn datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = udp(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    // As much as the kernel gives; `buffers` tells what came of it.
    let _ = socket.set_recv_buffer_size(UDP_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(UDP_BUFFER_BYTES);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn tcp(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for connections in TIME_WAIT; a listener elsewhere still refuses the bind.
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn udp(address: SocketAddr) -> io::Result<Socket> {
    Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))
}

/// Tells when the kernel gave a UDP socket less memory than a burst needs (`net.core.rmem_max`, `wmem_max`).
pub(crate) fn judge_buffers(socket: &UdpSocket) {
    let socket = socket2::SockRef::from(socket);
    let sizes = (socket.recv_buffer_size(), socket.send_buffer_size());
    if let (Ok(receive_bytes), Ok(send_bytes)) = sizes
        && receive_bytes.min(send_bytes) < UDP_BUFFER_BYTES_LEAST
    {
        tracing::warn!(
            receive_bytes,
            send_bytes,
            wanted_bytes = UDP_BUFFER_BYTES,
            "the kernel gives UDP sockets little memory: raise net.core.rmem_max and net.core.wmem_max, \
             or QUIC loses packets under load"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: &str = "127.0.0.1:0";

    #[test]
    fn one_port_is_found_for_both_and_shared_by_all_workers() {
        let (address, sockets) = bind(ANY.parse().unwrap(), 3).unwrap();
        assert_ne!(address.port(), 0);
        for worker in &sockets {
            assert_eq!(worker.tcp.local_addr().unwrap(), address);
            assert_eq!(worker.udp.local_addr().unwrap(), address);
        }
    }

    #[test]
    fn a_second_owner_is_refused() {
        let (address, sockets) = bind(ANY.parse().unwrap(), 2).unwrap();
        let second = bind(address, 2);
        assert_eq!(second.map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::AddrInUse));
        drop(sockets);
        bind(address, 1).unwrap();
    }

    #[test]
    fn an_owner_of_the_udp_port_alone_is_enough() {
        let owner = UdpSocket::bind(ANY).unwrap();
        let refused = bind(owner.local_addr().unwrap(), 1).map(|_| ());
        assert_eq!(refused.map_err(|error| error.kind()), Err(io::ErrorKind::AddrInUse));
    }
}
