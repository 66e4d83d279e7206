/* Subscribes to one live page on N connections, posts, and prints when each viewer has the resulting patch.
 *
 *   cc -O2 -o viewers viewers.c
 *   ./viewers PORT N POSTS INTERVAL_US LENGTH PID[,PID..] JOIN POST JSON
 *
 * JOIN is the target of the server-sent events, POST the target of posts with JSON. A stream starts with its head, then
 * has one patch of LENGTH bytes per post. The next post is sent when all viewers have the last patch, and at least
 * INTERVAL_US after it.
 *
 * Prints words of the form NAME=VALUE. Times are in microseconds from before the post is sent: "wire" until the kernel
 * has the patch for a viewer, "hand" until this process has read it, which includes earlier reads; "first" and "last" are
 * "wire" of the first and the last viewer of each post. "cpu" is the CPU time of all server threads during the posts,
 * "before" and "waiting" the server's user memory in bytes without viewers and per viewer. "others" counts bytes apart
 * from patches, which keep a stream open.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 19900, FIRST = 3, PATIENCE = 20000000 };

/* The state of a stream: in its head, or in a patch with `got` bytes so far. */
static struct { int fd, in_body; uint32_t got; } viewers[MOST + 1];
static char room[1 << 16];
static int port, n, ep;
static uint32_t length, answered, *wires, *hands, *firsts, *lasts, heads, patches, trips, others;
static int64_t posted, first, last; /* times of the current post; 0: it does not count */

static _Noreturn void fail(const char *message) { fprintf(stderr, "%s\n", message); exit(1); }

static _Noreturn void die(const char *what) { perror(what); exit(1); }

/* The clock of the kernel's time stamps. */
static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int connected(uint32_t number) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    /* From several addresses: the kernel's search for a free port is slow once half of the ports are taken. */
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / 4000)};
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) || connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = number};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
    return fd;
}

#include "servers.h"

/* Reads available bytes; returns their number and the kernel's time stamp. */
static ssize_t take(int fd, int64_t *at) {
    union { struct cmsghdr align; char bytes[256]; } control;
    struct iovec into = {room, sizeof room - 1};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return 0;
    if (got <= 0) fail("a connection was closed");
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            *at = t.tv_sec * 1000000LL + t.tv_nsec / 1000;
        }
    room[got] = 0;
    return got;
}

static void receive(uint32_t number) {
    int64_t at = 0;
    ssize_t got = take(viewers[number].fd, &at);
    if (!got) return;
    if (number == (uint32_t)n) { /* The response to a post. */
        if (strncmp(room, "HTTP/1.1 2", 10)) fail(room);
        answered = 1;
        return;
    }
    char *begin = room;
    if (!viewers[number].in_body) {
        if (strncmp(room, "HTTP/1.1 200", 12)) fail(room);
        if (!(begin = strstr(room, "\r\n\r\n"))) fail("incomplete head");
        begin += 4;
        heads++;
        viewers[number].in_body = 1;
    }
    uint32_t more = room + got - begin, *so_far = &viewers[number].got;
    if ((*so_far += more) > length) fail("more bytes than a patch");
    if (*so_far == length) {
        *so_far = 0;
        patches++;
        if (posted) {
            wires[trips] = at - posted;
            hands[trips++] = now() - posted;
            if (!first || at < first) first = at;
            if (at > last) last = at;
        }
    } else if (more && *so_far < 100 && !strcmp(room + got - 2, "\r\n") && !strstr(begin, "data:")) {
        *so_far = 0;
        others++;
    }
}

/* Handles events; without events, waits for `rest` milliseconds at most. While patches arrive it never sleeps: the cost
 * of waking this process would count as the server's, which does not happen with a remote client. */
static void turn(int rest) {
    static struct epoll_event got[512];
    int r = epoll_wait(ep, got, 512, rest);
    for (int i = 0; i < r; i++) receive(got[i].data.u32);
}

static void turn_until(int64_t time) {
    for (int64_t rest; (rest = time - now()) > 0;) turn(rest < 20000 ? rest / 1000 : 20);
}

static void join(uint32_t number, const char *target) {
    char request[1024];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n", target);
    viewers[number].fd = connected(number);
    if (send(viewers[number].fd, request, len, MSG_NOSIGNAL) != len) die("send");
}

static void await(uint32_t *count, uint32_t expected, const char *what) {
    for (int64_t until = now() + PATIENCE; *count < expected;) {
        turn(0);
        if (now() > until) fail(what);
    }
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, uint32_t *all, uint32_t count) {
    qsort(all, count, sizeof *all, ascending);
    printf("%s50=%u %s99=%u ", name, all[count / 2], name, all[count * 99ULL / 100]);
}

int main(int argc, char **argv) {
    n = argc > 2 ? atoi(argv[2]) : 0;
    int posts = argc > 3 ? atoi(argv[3]) : 0;
    if (argc < 10 || n < 1 || n > MOST || posts < 1) { fprintf(stderr, "usage: viewers PORT N POSTS INTERVAL_US LENGTH PID[,PID..] JOIN POST JSON\n"); return 2; }
    port = atoi(argv[1]);
    long interval = atol(argv[4]);
    length = atoi(argv[5]);
    const char *pids = argv[6], *target = argv[7];
    char request[2048];
    int len = snprintf(request, sizeof request, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", argv[8], strlen(argv[9]), argv[9]);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ep = epoll_create1(0);
    wires = malloc(sizeof *wires * n * (size_t)posts);
    hands = malloc(sizeof *hands * n * (size_t)posts);
    firsts = malloc(sizeof *firsts * posts);
    lasts = malloc(sizeof *lasts * posts);
    if (!wires || !hands || !firsts || !lasts) die("memory");
    long before = of_all(pids, USER);
    for (int i = 0; i < n; i++) {
        join(i, target);
        /* The remaining viewers share the render of the first one. */
        if (!i) await(&heads, 1, "the first viewer was refused");
        if (i % 256 == 255) turn(1);
    }
    await(&heads, n, "some viewers were refused");
    turn_until(now() + 1500000);
    long waiting = of_all(pids, USER);
    if (patches) fail("a page changed before the first post");
    viewers[n].fd = connected(n);
    long cpu = 0;
    for (int i = -FIRST; i < posts; i++) {
        if (i == 0) cpu = of_all(pids, CPU);
        answered = 0;
        patches = 0;
        int64_t begun = now();
        first = last = 0;
        posted = i < 0 ? 0 : begun;
        if (send(viewers[n].fd, request, len, MSG_NOSIGNAL) != len) die("send");
        await(&patches, n, "a patch is missing");
        await(&answered, 1, "a post was not answered");
        if (i >= 0) {
            firsts[i] = first - begun;
            lasts[i] = last - begun;
        }
        turn_until(begun + interval);
    }
    cpu = of_all(pids, CPU) - cpu;
    if (patches > (uint32_t)n) fail("a patch was repeated");
    printf("posts=%d before_them=%d patches=%u cpu=%ld before=%ld waiting=%ld others=%u ", posts, FIRST, trips, cpu, before,
           (waiting - before) / n, others);
    print("wire", wires, trips);
    print("hand", hands, trips);
    print("first", firsts, posts);
    print("last", lasts, posts);
    printf("\n");
}
