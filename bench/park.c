/* Opens N connections to 127.0.0.1:PORT, sends one GET on each, keeps them open, and prints the growth of anonymous and
 * shared memory of the processes PID,.. per connection. With "answered" each response is read first (idle
 * keep-alive); with "parked" the program does not wait for it (an open long poll). "http2" is "answered" over
 * HTTP/2 by prior knowledge.
 *
 *   cc -O2 -o park park.c
 *   ./park PORT N PID[,PID..] PATH answered|parked|http2
 *
 * Kernel memory of the sockets is not counted: it is the same for every server.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 19990 }; /* one address pair has about 28 000 ports, one process here 20 000 descriptors */
static int fds[MOST];

static long kibibytes(const char *pids) {
    char list[1024], path[64], line[256];
    long sum = 0, v;
    snprintf(list, sizeof list, "%s", pids);
    for (char *pid = strtok(list, ","); pid; pid = strtok(NULL, ",")) {
        snprintf(path, sizeof path, "/proc/%s/smaps_rollup", pid);
        FILE *f = fopen(path, "r");
        if (!f) { perror(path); exit(1); }
        while (fgets(line, sizeof line, f))
            if (sscanf(line, "Anonymous: %ld kB", &v) == 1 || sscanf(line, "Pss_Shmem: %ld kB", &v) == 1) sum += v;
        fclose(f);
    }
    return sum;
}

/* The start of a connection of HTTP/2, and a GET as its first stream (RFC 9113, RFC 7541). */
static int http2_request(char *out, const char *path) {
    static const char start[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" "\0\0\0\4\0\0\0\0\0"; /* with empty SETTINGS */
    static const char host[] = "localhost";
    int n = sizeof start - 1, length = strlen(path), fields = 2 + 2 + length + 2 + (int)sizeof host - 1;
    if (length > 126) { fprintf(stderr, "the path is too long\n"); exit(2); }
    memcpy(out, start, n);
    /* HEADERS of stream 1, with END_STREAM and END_HEADERS. */
    const char frame[] = {0, 0, (char)fields, 1, 5, 0, 0, 0, 1};
    memcpy(out + n, frame, sizeof frame), n += sizeof frame;
    out[n++] = (char)0x82, out[n++] = (char)0x86; /* :method GET, :scheme http */
    out[n++] = 4, out[n++] = (char)length, memcpy(out + n, path, length), n += length; /* :path */
    out[n++] = 1, out[n++] = sizeof host - 1, memcpy(out + n, host, sizeof host - 1), n += sizeof host - 1; /* :authority */
    return n;
}

/* Reads frames to the end of stream 1, acknowledges the settings, and returns whether the status is 200. */
static int http2_response(int fd, unsigned char *reply, size_t size) {
    size_t have = 0, at = 0;
    int is_ok = 0;
    for (;;) {
        while (have - at >= 9) {
            size_t length = reply[at] << 16 | reply[at + 1] << 8 | reply[at + 2];
            unsigned char type = reply[at + 3], flags = reply[at + 4];
            if (have - at < 9 + length) break;
            const unsigned char *content = reply + at + 9, *end = content + length;
            while (type == 1 && content < end && (*content & 0xe0) == 0x20) content++; /* a new size of the table */
            if (type == 1) is_ok = content < end && *content == 0x88;
            at += 9 + length;
            if ((type == 0 || type == 1) && flags & 1)
                return is_ok && send(fd, "\0\0\0\4\1\0\0\0\0", 9, MSG_NOSIGNAL) == 9;
        }
        ssize_t r = recv(fd, reply + have, size - have, 0);
        if (r <= 0) return 0;
        have += r;
    }
}

int main(int argc, char **argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (argc < 6 || n < 1 || n > MOST) { fprintf(stderr, "usage: park PORT N PID[,PID..] PATH answered|parked|http2\n"); return 2; }
    int answered = !strcmp(argv[5], "answered"), http2 = !strcmp(argv[5], "http2");
    char request[1024], reply[65536];
    int len = http2 ? http2_request(request, argv[4])
                    : snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", argv[4]);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    long before = kibibytes(argv[3]);
    for (int i = 0; i < n; i++) {
        int fd = fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) { perror("connect"); fprintf(stderr, "stopped at %d\n", i); return 1; }
        if (send(fd, request, len, MSG_NOSIGNAL) != len) { perror("send"); return 1; }
        if (answered && (recv(fd, reply, sizeof reply, 0) < 12 || memcmp(reply + 9, "200", 3))) { fprintf(stderr, "connection %d: no 200\n", i); return 1; }
        if (http2 && !http2_response(fd, (unsigned char *)reply, sizeof reply)) { fprintf(stderr, "connection %d: no 200\n", i); return 1; }
    }
    usleep(1500000); /* time for the server to free memory while idle */
    for (int i = 0; i < n; i++) {
        ssize_t r;
        /* Settings may arrive after the response. */
        do r = recv(fds[i], reply, sizeof reply, (http2 ? 0 : MSG_PEEK) | MSG_DONTWAIT);
        while (http2 && r > 0);
        if (r >= 0) { fprintf(stderr, "connection %d %s\n", i, r ? "was answered" : "was closed"); return 1; }
    }
    long after = kibibytes(argv[3]);
    printf("%d connections: %ld -> %ld KiB, %ld bytes per connection\n", n, before, after, (after - before) * 1024 / n);
}
