# An old stack before the receiver: writes of 8,000 octets, 8 kB in flight, Nagle's algorithm on.
import socket,sys,threading
lp,rp=int(sys.argv[1]),int(sys.argv[2])
l=socket.socket(); l.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1); l.bind(("127.0.0.1",lp)); l.listen(8)
def pump(a,b,old):
    buf=b""
    try:
        while True:
            d=a.recv(65536)
            if not d: break
            if not old: b.sendall(d); continue
            buf+=d
            while len(buf)>=4:
                n=int.from_bytes(buf[2:4],"big")
                if len(buf)<n: break
                b.sendall(buf[:n]); buf=buf[n:]
    except OSError: pass
    for s in (a,b):
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
while True:
    c,_=l.accept()
    r=socket.socket(); r.setsockopt(socket.SOL_SOCKET,socket.SO_SNDBUF,16384); r.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,0)
    r.connect(("127.0.0.1",rp)); c.setsockopt(socket.IPPROTO_TCP,socket.TCP_NODELAY,1)
    threading.Thread(target=pump,args=(c,r,True),daemon=True).start()
    threading.Thread(target=pump,args=(r,c,False),daemon=True).start()
