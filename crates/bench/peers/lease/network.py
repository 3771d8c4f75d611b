"""Links between a replica and the API server that a partition can cut: one TCP proxy for each replica."""

import asyncio
import threading

OPEN, HOLD, DROP = "open", "hold", "drop"


class Network:
    """The event loop of all links, in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def link(self, host, port):
        link = Link(self.loop, host, port)
        asyncio.run_coroutine_threadsafe(link.listen(), self.loop).result()
        return link


class Link:
    """A proxy on a port of its own.

    While it holds, what is sent waits, and is delivered afterwards: TCP sends again what was not acknowledged. While it
    drops, what is sent is lost, and the connections that were there break when the link is open again.
    """

    def __init__(self, loop, host, port):
        self.loop, self.host, self.upstream = loop, host, port
        self.state = OPEN
        self.opened = asyncio.Event()
        self.opened.set()
        self.connections = set()

    async def listen(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    def set(self, state):
        self.loop.call_soon_threadsafe(self._set, state)

    def _set(self, state):
        if self.state == DROP and state == OPEN:
            for writer in self.connections:
                writer.transport.abort()
        self.state = state
        if state == OPEN:
            self.opened.set()
        else:
            self.opened.clear()

    async def _serve(self, reader, writer):
        self.connections.add(writer)
        up = None
        try:
            if self.state != OPEN:
                await self.opened.wait()
            from_server, up = await asyncio.open_connection(self.host, self.upstream)
            self.connections.add(up)
            await asyncio.gather(self._pump(reader, up), self._pump(from_server, writer))
        except OSError:
            pass
        finally:
            for end in (writer, up):
                if end:
                    self.connections.discard(end)
                    end.close()

    async def _pump(self, reader, writer):
        while data := await reader.read(65536):
            if self.state == DROP:
                continue
            await self.opened.wait()
            writer.write(data)
            await writer.drain()
        await self.opened.wait()
        # One direction may end before the other; a client that gives up a request ends both.
        writer.close()
