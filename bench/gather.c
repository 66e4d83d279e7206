/* Measures whether a constant piece of a page should be copied after the preceding bytes and sent with send, or sent
 * from its own place with writev. Both go to a reader on the other core, over loopback. Prints a table of the CPU time
 * of this thread per reply, in turns.
 *
 * usage: gather [ROUNDS] */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HEAD 200
#define LARGEST (1 << 20)

static void check(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void pin(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    check(sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static void sent_whole(ssize_t sent, size_t wanted) {
    if (sent != (ssize_t)wanted) {
        perror("send");
        exit(1);
    }
}

static int ascending(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

int main(int count, char **words) {
    int rounds = count > 1 ? atoi(words[1]) : 41;
    int listener = socket(AF_INET, SOCK_STREAM, 0), writer;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    check(bind(listener, (struct sockaddr *)&address, length), "bind");
    check(listen(listener, 1), "listen");
    check(getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
    pid_t reader = fork();
    check(reader, "fork");
    if (reader == 0) {
        pin(1);
        static char sink[LARGEST];
        int peer = socket(AF_INET, SOCK_STREAM, 0);
        check(connect(peer, (struct sockaddr *)&address, length), "connect");
        while (recv(peer, sink, sizeof sink, 0) > 0) {
        }
        return 0;
    }
    pin(0);
    check(writer = accept(listener, NULL, NULL), "accept");

    char *piece = malloc(LARGEST), *buffer = malloc(LARGEST + HEAD), head[HEAD];
    double *times[2] = {calloc(rounds, sizeof(double)), calloc(rounds, sizeof(double))};
    memset(piece, 'x', LARGEST);
    memset(head, 'h', HEAD);
    memset(buffer, 0, LARGEST + HEAD);
    printf("| piece, KiB | copied, us | writev, us | x copied |\n|---|---|---|---|\n");
    for (size_t size = 1024; size <= LARGEST; size *= 4) {
        int replies = size > 100000 ? 100 : 500;
        for (int round = 0; round < rounds; round++) {
            for (int way = 0; way < 2; way++) {
                double began = cpu();
                for (int reply = 0; reply < replies; reply++) {
                    if (way == 0) {
                        memcpy(buffer, head, HEAD);
                        memcpy(buffer + HEAD, piece, size);
                        sent_whole(send(writer, buffer, HEAD + size, 0), HEAD + size);
                    } else {
                        struct iovec parts[2] = {{head, HEAD}, {piece, size}};
                        sent_whole(writev(writer, parts, 2), HEAD + size);
                    }
                }
                times[way][round] = (cpu() - began) / replies;
            }
        }
        for (int way = 0; way < 2; way++) {
            qsort(times[way], rounds, sizeof(double), ascending);
        }
        double copied = times[0][rounds / 2], gathered = times[1][rounds / 2];
        printf("| %zu | %.2f | %.2f | %.2f |\n", size / 1024, copied, gathered, gathered / copied);
    }
    close(writer);
    return 0;
}
