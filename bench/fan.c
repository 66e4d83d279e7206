/* The floor of a fan-out: an epoll loop that keeps every connection with a GET except for /hello, and sends each posted
 * message to all of them in a plain loop, with a head as long as Bine's. A poll must then be repeated; an event stream
 * gets a chunk per message.
 *
 *   cc -O2 -o fan fan.c
 *   ./fan PORT [FILE]
 *
 * With FILE, each of them is sent the content of FILE for each post, and no other bytes.
 *
 * Serves 127.0.0.1 only, and understands only the requests of followers.c. A message must fit the socket's send buffer.
 * A follower between two polls gets a message with its next poll, if it is the last message.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 20000, LOG = 4096, ROOM = 1024 };

static char log_of[LOG][ROOM];        /* the messages, by number modulo LOG */
static int lengths[LOG];
static unsigned published;
static struct { char kind; unsigned seen; } waiting[MOST]; /* 0: no; 'p': poll; 'e': events */

static char canned[1 << 16]; /* the file */
static int canned_length;

static void die(const char *what) { perror(what); exit(1); }

static void notify(int fd) {
    if (canned_length) {
        waiting[fd].seen = published;
        if (send(fd, canned, canned_length, MSG_NOSIGNAL) != canned_length) die("send");
        return;
    }
    char out[1 << 16];
    int len = 0, body = 0;
    unsigned from = waiting[fd].seen;
    for (unsigned i = from; i < published; i++) body += lengths[i % LOG];
    if (waiting[fd].kind == 'p')
        len = sprintf(out, "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 21:00:00 GMT\r\nContent-Type: application/json\r\nCache-Control: no-store, "
                           "no-transform\r\nX-Accel-Buffering: no\r\nCursor: 00000000_%016u\r\nContent-Length: %10d\r\n\r\n", published, body);
    else
        len = sprintf(out, "%x\r\n", body);
    for (; waiting[fd].seen < published; waiting[fd].seen++) {
        int at = waiting[fd].seen % LOG;
        memcpy(out + len, log_of[at], lengths[at]);
        len += lengths[at];
    }
    if (waiting[fd].kind == 'p') waiting[fd].kind = 0; else len += sprintf(out + len, "\r\n");
    if (send(fd, out, len, MSG_NOSIGNAL) != len) die("send");
}

static int serve(int fd) {
    static const char hello[] = "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n<h1>Hello TLUG</h1>", done[] = "HTTP/1.1 204 No Content\r\n\r\n";
    static const char begun[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    char in[4096];
    ssize_t got = recv(fd, in, sizeof in - 1, MSG_DONTWAIT);
    if (got <= 0) return got < 0;
    in[got] = 0;
    if (!strncmp(in, "GET /hello", 10)) return send(fd, hello, sizeof hello - 1, MSG_NOSIGNAL) > 0;
    if (!strncmp(in, "GET", 3)) {
        char *after = strstr(in, "&after=00000000_");
        waiting[fd].seen = after ? strtoul(after + 16, NULL, 10) : published;
        waiting[fd].kind = strstr(in, "event-stream") ? 'e' : 'p';
        if (waiting[fd].kind == 'e') send(fd, begun, sizeof begun - 1, MSG_NOSIGNAL);
        if (waiting[fd].seen < published) notify(fd);
        return 1;
    }
    char *body = strstr(in, "\r\n\r\n");
    if (!body) return 0;
    snprintf(log_of[published % LOG], ROOM, "[{\"cursor\":\"00000000_0000000000000000\",\"time\":0000000000000,%s]", body + 5);
    lengths[published % LOG] = strlen(log_of[published % LOG]);
    published++;
    for (int i = 0; i < MOST; i++) if (waiting[i].kind) notify(i);
    return send(fd, done, sizeof done - 1, MSG_NOSIGNAL) > 0;
}

int main(int argc, char **argv) {
    if (argc < 2) { fprintf(stderr, "usage: fan PORT [FILE]\n"); return 2; }
    if (argc > 2) {
        FILE *f = fopen(argv[2], "r");
        if (!f || !(canned_length = fread(canned, 1, sizeof canned, f))) die(argv[2]);
        fclose(f);
    }
    signal(SIGPIPE, SIG_IGN);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) die("listen");
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, got[512];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int r = epoll_wait(ep, got, 512, -1), c;
        for (int i = 0; i < r; i++) {
            int fd = got[i].data.fd;
            if (fd == listener) {
                while ((c = accept4(listener, NULL, NULL, 0)) >= 0) {
                    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    struct epoll_event ce = {.events = EPOLLIN, .data.fd = c};
                    epoll_ctl(ep, EPOLL_CTL_ADD, c, &ce);
                }
            } else if (!serve(fd)) {
                waiting[fd].kind = 0;
                close(fd);
            }
        }
    }
}
