/* Subscribes to one channel on N connections while a second process publishes, and prints the four measures of Liu and
 * Cui ("PushUp"): traffic, publish trip time, received share, memory of the server's processes PID,.. Checks that every
 * follower gets every message once and in order.
 *
 *   cc -O2 -o followers followers.c
 *   ./followers KIND PORT N MESSAGES INTERVAL_US PID[,PID..][+PID[,PID..]].. [NAME=VALUE]..
 *
 * KIND: poll, events or pull of Bine; nchan-poll, nchan-events; centrifugo-events; poll and events also work with fan.c.
 * "pull" requests at its own pace without waiting. "storm" polls; in the middle all followers disconnect, 50 more messages
 * are published, all followers reconnect at once with their old cursors, and the publisher continues.
 *
 *   pull=US    interval of a follower's pulls; the followers are spread evenly over it (100000)
 *   wait=S     longest wait of a poll (50)
 *   phase=US   delay of the first message, for followers that run in parallel (0)
 *   probe=US   interval of requests for the page /hello; 0: no requests (4000)
 *   whole=1    counts until the last message is one interval old, so that traffic covers whole intervals (0)
 *   plain=1    publishes the message alone at /publish, as for Nchan (0)
 *
 * Prints words of the form NAME=VALUE. Times are in microseconds, on one clock for all processes of the machine; memory
 * and traffic are in bytes. Traffic excludes TCP/IP headers; "segments" counts the segments. The page /hello, or
 * /health of Centrifugo, is requested before the first message (calm) and during the messages (busy), by a process with
 * real-time priority (needs root). "before", "parked" and "full" are user memory of the server: without followers, with
 * all followers waiting, at the end. "kernel" is the kernel memory of the whole machine in slabs, thread stacks and page
 * tables while all followers wait, for both ends of each connection. The first group of processes is the server;
 * "resident" is its resident memory at "before" and "parked". Each further group adds the words cpu1 and parked1, cpu2 and
 * parked2, and so on; a group may be empty.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 19900, ROOM = 64 << 10, STAMP = 34, AWAY = 50, PATIENCE = 20000000, PROBES = 500, GROUPS = 4 };

struct follower {
    int fd;
    uint32_t got;             /* messages so far, which is the number of the next one */
    uint32_t len;             /* bytes of an incomplete response */
    char cursor[64], tag[64]; /* its position; Nchan needs two words */
    int64_t due, again;       /* times of the next pull, or 0 while a response is awaited, and of the one after it */
};

/* Memory shared by the processes. */
struct shared {
    volatile int failed;       /* set if a process has failed */
    volatile int stage;        /* 0: calm; 1: publish; 2: pause; 3: continue; 4: end */
    volatile uint32_t published;
    uint32_t probes[2];
    uint32_t calm[1 << 16], busy[1 << 16];
};

static struct follower followers[MOST];
static char (*rooms)[ROOM];
static struct shared *shared;
static const char *kind;
static int port, n, is_nchan, is_centrifugo, is_stream, is_pull, ep, groups;
static char *processes[GROUPS];
static uint32_t messages, half, *trips, trip_count, missed, repeated;
static uint64_t traffic;
static long pull = 100000, waits = 50, phase = 0, probes = 4000, whole = 0, plain = 0;

static _Noreturn void fail(const char *message) {
    fprintf(stderr, "%s\n", message);
    if (shared) shared->failed = 1; /* ends the waits of the remaining processes */
    exit(1);
}

static _Noreturn void die(const char *what) {
    char message[256];
    snprintf(message, sizeof message, "%s: %s", what, strerror(errno));
    fail(message);
}

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int connected(void) {
    static unsigned made;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    /* From several addresses: the kernel's search for a free port is slow once half of the ports are taken. */
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + made++ / 4000 % 100)};
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) || connect(fd, (struct sockaddr *)&to, sizeof to)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

#include "servers.h"

static void ask(struct follower *it) {
    char request[512];
    int len;
    if (is_nchan) {
        char since[192] = "";
        if (it->cursor[0]) snprintf(since, sizeof since, "If-Modified-Since: %s\r\nIf-None-Match: %s\r\n", it->cursor, it->tag);
        len = snprintf(request, sizeof request, "GET /follow HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n%s\r\n",
                       is_stream ? "text/event-stream" : "text/plain", since);
    } else if (is_centrifugo) {
        /* {"subs":{"news":{}}} */
        len = snprintf(request, sizeof request, "GET /connection/uni_sse?cf_connect=%%7B%%22subs%%22%%3A%%7B%%22news%%22%%3A%%7B%%7D%%7D%%7D HTTP/1.1\r\n"
                       "Host: localhost\r\nAccept: text/event-stream\r\n\r\n");
    } else {
        len = snprintf(request, sizeof request, "GET /channels?c=news&after=%s&wait=%d HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n\r\n",
                       it->cursor[0] ? it->cursor : "now", is_pull ? 0 : (int)waits, is_stream ? "text/event-stream" : "application/json");
    }
    if (send(it->fd, request, len, MSG_NOSIGNAL) != len) die("send");
    traffic += len;
    it->due = 0;
}

static void join(struct follower *it) {
    it->fd = connected();
    it->len = 0;
    if (is_pull) it->due = now() + pull * (it - followers) / n; else ask(it);
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = it - followers};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, it->fd, &e)) die("epoll_ctl");
}

static void copy_field(const char *head, const char *name, char *to) {
    const char *at = strcasestr(head, name);
    if (at) sscanf(at + strlen(name), " %63[^\r\n]", to);
}

/* Parses the time stamps in some bytes. Returns the end of the last one. */
static size_t take(struct follower *it, const char *bytes, size_t len, int64_t at) {
    const char *p = bytes, *end = bytes + len;
    for (char *found; (found = memmem(p, end - p, "@=", 2)) && end - found >= STAMP;) {
        int64_t sent = strtoll(found + 2, NULL, 10);
        uint32_t number = strtoul(found + 22, NULL, 10);
        if (number < it->got) {
            repeated++;
        } else {
            missed += number - it->got;
            it->got = number + 1;
            /* Messages published during the disconnect count as trips too, up to the size of the array. */
            if (trip_count < (uint64_t)n * messages) trips[trip_count++] = at - sent;
        }
        p = found + STAMP;
    }
    return p - bytes;
}

static int receive(struct follower *it) {
    char *room = rooms[it - followers];
    ssize_t r = recv(it->fd, room + it->len, ROOM - 1 - it->len, MSG_DONTWAIT);
    if (r < 0 && errno == EAGAIN) return 1;
    if (r <= 0) return 0;
    int64_t at = now();
    traffic += r;
    it->len += r;
    room[it->len] = 0;
    if (is_stream) {
        size_t end = take(it, room, it->len, at);
        if (it->len - end > STAMP) end = it->len - STAMP;
        memmove(room, room + end, it->len -= end);
        return 1;
    }
    char *body = strstr(room, "\r\n\r\n");
    if (!body) return 1;
    body += 4;
    char saved = body[-2];
    body[-2] = 0;
    char length[64] = "0";
    copy_field(room, "\nContent-Length:", length);
    size_t whole = body - room + strtoul(length, NULL, 10);
    if (it->len >= whole) {
        copy_field(room, "\nCursor:", it->cursor);
        copy_field(room, "\nLast-Modified:", it->cursor);
        copy_field(room, "\nEtag:", it->tag);
        int refused = strncmp(room + 9, "200", 3) && strncmp(room + 9, "204", 3);
        if (refused) fail(room);
        take(it, body, whole - (body - room), at);
        it->len = 0;
        if (is_pull) it->due = it->again; else ask(it);
        return 1;
    }
    body[-2] = saved;
    return 1;
}

/* A blocking exchange; the response is stored in `room`. */
static void exchange(int fd, const char *request, int len, char *room, size_t size) {
    if (send(fd, request, len, MSG_NOSIGNAL) != len) die("send");
    size_t got = 0;
    for (;;) {
        ssize_t r = recv(fd, room + got, size - 1 - got, 0);
        if (r <= 0) die("no response");
        room[got += r] = 0;
        char *body = strstr(room, "\r\n\r\n"), length[64] = "0";
        if (!body) continue;
        copy_field(room, "\nContent-Length:", length);
        if (got >= (size_t)(body + 4 - room) + strtoul(length, NULL, 10)) return;
    }
}

static void until(int64_t time) {
    int64_t rest = time - now();
    if (rest > 0) usleep(rest);
}

static _Noreturn void publish(uint32_t many, long interval) {
    char body[512], request[1024], answer[65536];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1000);
    while (shared->stage == 0) usleep(1000);
    int fd = connected();
    int64_t next = now();
    for (uint32_t i = 0; i < many; i++) {
        if (shared->stage == 2 && i == half + AWAY) while (shared->stage == 2) usleep(100);
        if (shared->stage == 2) next = now(); /* no follower is connected: no pace */
        until(next - 1000);
        /* A server may close a connection that is idle for this long. */
        if (interval >= 1000000 && i) { close(fd); fd = connected(); }
        until(next);
        next += interval * (shared->stage != 2);
        const char *form = is_nchan || plain ? "@=%019lld %010u; %0*d"
                           : is_centrifugo   ? "{\"channel\":\"news\",\"data\":\"@=%019lld %010u; %0*d\"}"
                                             : "{\"channels\":\"news\",\"data\":\"@=%019lld %010u; %0*d\"}";
        int len = snprintf(body, sizeof body, form, (long long)now(), i, 165, 0);
        len = snprintf(request, sizeof request, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
                       is_nchan || plain ? "/publish" : is_centrifugo ? "/api/publish" : "/channels", len, body);
        exchange(fd, request, len, answer, sizeof answer);
        if (answer[9] != '2') fail(answer);
        shared->published = i + 1;
        if (!strcmp(kind, "storm") && i + 1 == half) while (shared->stage == 1) usleep(100);
    }
    exit(0);
}

static _Noreturn void probe(void) {
    char request[128], answer[4096];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", is_centrifugo ? "/health" : "/hello?name=TLUG");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Otherwise waits for this process's turn would count as the server's time. Needs root. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    int fd = connected();
    for (int64_t next = now(); shared->stage < 4; next += probes) {
        until(next);
        int is_busy = shared->stage > 0;
        int64_t begun = now();
        exchange(fd, request, len, answer, sizeof answer);
        uint32_t *count = &shared->probes[is_busy], *to = is_busy ? shared->busy : shared->calm;
        if (*count < 1 << 16) to[(*count)++] = now() - begun;
    }
    exit(0);
}

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t part(uint32_t *sorted, uint32_t count, double share) {
    uint32_t rank = share * count;
    return count ? sorted[rank < count ? rank : count - 1] : 0;
}

/* Handles events; without events, waits for `rest` milliseconds at most. */
static void turn(int rest) {
    static struct epoll_event got[512];
    if (shared->failed) exit(1);
    int r = epoll_wait(ep, got, 512, is_pull ? 1 : rest);
    for (int i = 0; i < r; i++) {
        struct follower *it = &followers[got[i].data.u32];
        if (!receive(it)) fail("a follower was disconnected");
    }
    if (is_pull) {
        int64_t at = now();
        for (int i = 0; i < n; i++) {
            struct follower *it = &followers[i];
            if (!it->due || it->due > at) continue;
            it->again = it->due + pull;
            ask(it);
        }
    }
}

static void turn_until(int64_t time) {
    for (int64_t rest; (rest = time - now()) > 0;) turn(rest < 20000 ? rest / 1000 : 20);
}

/* Segments sent and received so far. */
static uint64_t segments(void) {
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        struct tcp_info info = {0};
        socklen_t len = sizeof info;
        if (getsockopt(followers[i].fd, IPPROTO_TCP, TCP_INFO, &info, &len)) die("TCP_INFO");
        sum += info.tcpi_segs_out + info.tcpi_segs_in;
    }
    return sum;
}

static long kernel_memory(void) {
    char line[256];
    long sum = 0, v;
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) die("/proc/meminfo");
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "Slab: %ld kB", &v) == 1 || sscanf(line, "KernelStack: %ld kB", &v) == 1 || sscanf(line, "PageTables: %ld kB", &v) == 1)
            sum += v * 1024;
    fclose(f);
    return sum;
}

static void set(const char *word) {
    static const struct { const char *name; long *value; } all[] = {
        {"pull", &pull}, {"wait", &waits}, {"phase", &phase}, {"probe", &probes}, {"whole", &whole}, {"plain", &plain}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t len = strlen(all[i].name);
        if (!strncmp(word, all[i].name, len) && word[len] == '=') { *all[i].value = atol(word + len + 1); return; }
    }
    fprintf(stderr, "followers: unknown setting %s\n", word);
    exit(2);
}

static void split_groups(char *all) {
    for (char *at = all; at; groups++) {
        if (groups == GROUPS) fail("too many groups of processes");
        processes[groups] = at;
        at = strchr(at, '+');
        if (at) *at++ = 0;
    }
}

static void await(uint32_t number) {
    int64_t heard = now();
    for (uint32_t before = trip_count; trip_count + missed < (uint64_t)n * number && now() - heard < PATIENCE;) {
        turn(20);
        if (trip_count != before) { before = trip_count; heard = now(); }
        if (shared->published < number) heard = now();
    }
}

int main(int argc, char **argv) {
    n = argc > 3 ? atoi(argv[3]) : 0;
    if (argc < 7 || n < 1 || n > MOST) { fprintf(stderr, "usage: followers KIND PORT N MESSAGES INTERVAL_US PID[,PID..][+PID..].. [NAME=VALUE]..\n"); return 2; }
    kind = argv[1];
    port = atoi(argv[2]);
    messages = atoi(argv[4]);
    half = messages / 2;
    if (!strcmp(kind, "storm")) messages += AWAY;
    long interval = atol(argv[5]);
    for (int i = 7; i < argc; i++) set(argv[i]);
    split_groups(argv[6]);
    is_nchan = !strncmp(kind, "nchan", 5);
    is_centrifugo = !strncmp(kind, "centrifugo", 10);
    is_stream = strstr(kind, "events") != NULL;
    is_pull = !strcmp(kind, "pull");
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ep = epoll_create1(0);
    rooms = mmap(NULL, (size_t)n * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    trips = malloc(sizeof *trips * n * (size_t)messages);
    if (rooms == MAP_FAILED || shared == MAP_FAILED || !trips) die("memory");
    pid_t publisher = fork();
    if (!publisher) publish(messages, interval);
    pid_t prober = probes ? fork() : 0;
    if (probes && !prober) probe();
    while (probes && shared->probes[0] < PROBES && !shared->failed) usleep(10000);
    long before = of_all(processes[0], USER), resident_before = of_all(processes[0], RESIDENT);
    for (int i = 0; i < n; i++) {
        join(&followers[i]);
        if (i % 256 == 255) turn(1);
    }
    /* By then each follower has pulled once. */
    turn_until(now() + 1500000 + (is_pull ? pull : 0));
    long parked[GROUPS], cpu[GROUPS], resident = of_all(processes[0], RESIDENT), kernel = kernel_memory();
    for (int i = 0; i < groups; i++) parked[i] = of_all(processes[i], USER);
    turn_until(now() + phase);
    for (int i = 0; i < groups; i++) cpu[i] = of_all(processes[i], CPU);
    uint64_t before_traffic = traffic, before_segments = segments();
    int64_t begun = now(), stormed = 0;
    shared->stage = 1;
    if (!strcmp(kind, "storm")) {
        await(half);
        for (int i = 0; i < n; i++) close(followers[i].fd);
        shared->stage = 2;
        while (shared->published < half + AWAY && !shared->failed) usleep(100);
        int64_t back = now();
        shared->stage = 3;
        for (int i = 0; i < n; i++) {
            join(&followers[i]);
            if (i % 256 == 255) turn(1);
        }
        await(half + AWAY);
        stormed = now() - back;
    }
    await(messages);
    int64_t took = now() - begun;
    if (whole) turn_until(begun + interval * messages);
    for (int i = 0; i < groups; i++) cpu[i] = of_all(processes[i], CPU) - cpu[i];
    long full = of_all(processes[0], USER);
    /* In a storm the connections change, so segments are not comparable. */
    uint64_t sent = strcmp(kind, "storm") ? segments() - before_segments : 0;
    shared->stage = 4;
    int status = 0;
    waitpid(publisher, &status, 0);
    if (probes) waitpid(prober, NULL, 0);
    if (status) return 1;
    double sum = 0;
    for (uint32_t i = 0; i < trip_count; i++) sum += trips[i];
    qsort(trips, trip_count, sizeof *trips, ascending);
    qsort(shared->calm, shared->probes[0], sizeof *trips, ascending);
    qsort(shared->busy, shared->probes[1], sizeof *trips, ascending);
    printf("due=%llu received=%u missed=%u repeated=%u ", (unsigned long long)n * messages, trip_count, missed, repeated);
    printf("mean=%.0f p50=%u p99=%u p999=%u ", trip_count ? sum / trip_count : 0, part(trips, trip_count, 0.5),
           part(trips, trip_count, 0.99), part(trips, trip_count, 0.999));
    printf("traffic=%llu segments=%llu took=%lld cpu=%ld ", (unsigned long long)(traffic - before_traffic),
           (unsigned long long)sent, (long long)took, cpu[0]);
    printf("before=%ld parked=%ld kernel=%ld ", before, parked[0], kernel);
    printf("resident_before=%ld resident=%ld ", resident_before, resident);
    for (int i = 1; i < groups; i++) printf("cpu%d=%ld parked%d=%ld ", i, cpu[i], i, parked[i]);
    printf("waiting=%ld full=%ld calm=%u busy=%u stormed=%lld\n", (parked[0] - before) / n, full,
           part(shared->calm, shared->probes[0], 0.99), part(shared->busy, shared->probes[1], 0.99), (long long)stormed);
}
