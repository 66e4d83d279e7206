/* The physical limit: an epoll loop per thread that parses no request and answers every request head with the same
 * canned bytes. No correct HTTP server can use less CPU per request on the same kernel.
 *
 *   cc -O2 -pthread -o limit limit.c
 *   ./limit PORT THREADS [FILE [cork]]     FILE: the exact bytes of one response (default: a tiny hello page)
 *                                          cork: TCP_CORK around each send, to measure its cost
 *
 * Serves 127.0.0.1 only. Pipelined responses must fit the socket's send buffer together.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPELINED = 64 };

static char answer[1 << 16] =
    "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 21:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n"
    "Content-Length:         19\r\n\r\n<h1>Hello TLUG</h1>";
static size_t answer_len;
static int port, cork;

static void die(const char *what) { perror(what); exit(1); }

/* Answers the received requests; returns 0 when the connection is closed. */
static int serve(int fd, char *in, size_t room, char *out) {
    for (;;) {
        ssize_t got = recv(fd, in, room, 0);
        if (got <= 0) return got < 0 && errno == EAGAIN;
        size_t len = 0;
        for (char *p = in; (p = memmem(p, in + got - p, "\r\n\r\n", 4)) && len < PIPELINED * answer_len; p += 4) {
            memcpy(out + len, answer, answer_len);
            len += answer_len;
        }
        int one = 1, none = 0;
        if (cork) setsockopt(fd, IPPROTO_TCP, TCP_CORK, &one, sizeof one);
        if (len && send(fd, out, len, MSG_NOSIGNAL) != (ssize_t)len) return 0;
        if (cork) setsockopt(fd, IPPROTO_TCP, TCP_CORK, &none, sizeof none);
        if ((size_t)got < room) return 1; /* edge-triggered: a short read has emptied the socket */
    }
}

static _Noreturn void *loop(void *unused) {
    (void)unused;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) die("listen");
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener}, got[512];
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
    static __thread char in[16384];
    char *out = malloc(PIPELINED * answer_len);
    if (!out) die("malloc");
    for (;;) {
        int n = epoll_wait(ep, got, 512, -1);
        for (int i = 0; i < n; i++) {
            int fd = got[i].data.fd, c;
            if (fd != listener) {
                if (!serve(fd, in, sizeof in, out)) close(fd);
                continue;
            }
            while ((c = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct epoll_event ce = {.events = EPOLLIN | EPOLLET | EPOLLRDHUP, .data.fd = c};
                epoll_ctl(ep, EPOLL_CTL_ADD, c, &ce);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: limit PORT THREADS [FILE [cork]]\n"); return 2; }
    port = atoi(argv[1]);
    answer_len = strlen(answer);
    if (argc > 3) {
        FILE *f = fopen(argv[3], "rb");
        if (!f) die(argv[3]);
        answer_len = fread(answer, 1, sizeof answer, f);
        if (!answer_len || answer_len == sizeof answer) { fprintf(stderr, "%s: empty or too long\n", argv[3]); return 1; }
        fclose(f);
    }
    cork = argc > 4 && !strcmp(argv[4], "cork");
    pthread_t t;
    for (int i = atoi(argv[2]); i > 1; i--) pthread_create(&t, NULL, loop, NULL);
    loop(NULL);
}
